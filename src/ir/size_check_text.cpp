// size_check_text.cpp — checks of sizes to and from text.
#include "base/error.h"
#include "ir/parse.h"
#include "ir/size_checks.h"

namespace tenon {

SizeChecks::SizeChecks(const std::vector<SizeCheckText>& texts) {
  for (const SizeCheckText& text : texts) {
    Part& part = parts_.emplace_back();
    part.graph = parse(text.graph);
    if (part.graph->node_count() != 1 ||
        part.graph->input_count() != static_cast<int64_t>(text.contents.size()))
      throw user_error("a check of sizes is of one node, and knows something or nothing of each operand");
    part.node = part.graph->first();
    part.contents = text.contents;
    for (Value input : part.graph->inputs()) {
      part.types.push_back(input.type());
      input.data()->content = text.contents[static_cast<size_t>(input.index())];
    }
    number_symbols(part);
  }
}

std::vector<SizeCheckText> SizeChecks::texts() const {
  std::vector<SizeCheckText> texts;
  for (const Part& part : parts_) {
    const std::unique_ptr<Graph> graph = part.graph->clone();
    for (Value input : graph->inputs())
      input.data()->type = part.types[static_cast<size_t>(input.index())];
    texts.push_back({print(*graph), part.contents});
  }
  return texts;
}

}  // namespace tenon
