#include "cli/made_up.h"

#include "cli/output.h"

namespace tenon::cli {

void note_open_sizes(const Graph& graph) {
  if (const std::string dims = dims_to_bind(graph); !dims.empty())
    write_note(fmt::format("note: sizes that are not given are 1; give them with {}\n", dims));
}

}  // namespace tenon::cli
