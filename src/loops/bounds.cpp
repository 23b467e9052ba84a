#include "loops/bounds.h"

#include <algorithm>

#include "loops/isl.h"
#include "loops/runs.h"
#include "loops/uses.h"

namespace tenon::loops {
namespace {

Kernel at_sizes(Kernel kernel, const std::map<std::string, int64_t>& sizes) {
  const std::map<std::string, Dim> replacements(sizes.begin(), sizes.end());
  for (std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
    for (Buffer& buffer : *buffers)
      for (Dim& size : buffer.sizes)
        size = size.substitute(replacements);
  for (Statement& statement : kernel.body)
    statement = substitute(statement, replacements);
  return kernel;
}

void add_locals(const std::vector<Statement>& body, std::map<std::string, std::vector<Dim>>& sizes) {
  for (const Statement& statement : body) {
    if (const auto* local = std::get_if<Local>(&statement))
      sizes.insert_or_assign(local->buffer.name, local->buffer.sizes);
    if (const std::vector<Statement>* inner = body_of(statement))
      add_locals(*inner, sizes);
  }
}

class Bounds {
 public:
  explicit Bounds(const Kernel& kernel) : words_(kernel) {
    for (const std::vector<Buffer>* buffers : {&kernel.inputs, &kernel.outputs})
      for (const Buffer& buffer : *buffers)
        sizes_.insert_or_assign(buffer.name, buffer.sizes);
    add_locals(kernel.body, sizes_);
  }

  bool contain(const Run& run) {
    bool all = std::holds_alternative<Assign>(*run.statement);
    for_each_use(*run.statement, [&](const Use& use) { all = all && contain(run, use); });
    return all;
  }

 private:
  // What a select does not choose may lie outside, and what it does choose depends on data.
  bool contain(const Run& run, const Use& use) {
    const std::vector<Dim>& sizes = sizes_.at(use.place.buffer);
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const Scalar& at = use.place.at[axis];
      const std::optional<std::string> index =
          at.kind() == Scalar::Kind::Index ? words_.find_expression(at.index()) : std::nullopt;
      if (!index || use.chosen || can_leave(run, *index, words_.expression(sizes[axis])))
        return false;
    }
    return true;
  }
  bool can_leave(const Run& run, const std::string& index, const std::string& size) {
    std::vector<std::string> variables;
    for (const auto& [loop, place] : run.around)
      variables.push_back(words_.name(loop->variable));
    const std::string piece = fmt::format("L[{}] -> R[] : {} and ({} < 0 or {} >= {})",
                                          fmt::join(variables, ", "), words_.domain(run), index, index, size);
    return !Relation(context_, words_.relation({piece})).empty();
  }

  Context context_;
  Words words_;
  std::map<std::string, std::vector<Dim>> sizes_;  // of buffers
};

}  // namespace

bool stays_in_bounds(const Kernel& kernel, const std::map<std::string, int64_t>& sizes) try {
  const Kernel bound = at_sizes(kernel, sizes);
  Bounds bounds(bound);
  return std::ranges::all_of(find_runs(bound), [&](const Run& run) { return bounds.contain(run); });
} catch (const Undecided&) {
  return false;
}

}  // namespace tenon::loops
