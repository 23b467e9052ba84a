#include "lowering/equal.h"

#include <algorithm>

#include "ir/print.h"
#include "lowering/print.h"
#include "passes/target/constant_pieces.h"

namespace tenon::lowering {

using loops::Definition;

namespace {

bool are_equal(const Definition& a, const Definition& b) {
  return a.results == b.results && a.axes == b.axes && a.reduced == b.reduced && a.at == b.at &&
         a.combine == b.combine && a.own_combine == b.own_combine && a.initial == b.initial &&
         a.values == b.values;
}

bool are_equal(const std::optional<Definition>& a, const std::optional<Definition>& b) {
  return a.has_value() == b.has_value() && (!a || are_equal(*a, *b));
}

bool are_equal(const std::optional<ContractionPart>& a, const std::optional<ContractionPart>& b) {
  return a.has_value() == b.has_value() && (!a || (a->key == b->key && a->choice == b->choice));
}

bool are_equal(const Stage& a, const Stage& b) {
  return are_equal(a.definition, b.definition) && are_equal(a.as_written, b.as_written) &&
         are_equal(a.contraction, b.contraction) && a.sources == b.sources && a.refusing == b.refusing &&
         a.winograd_tile == b.winograd_tile && a.packed_b == b.packed_b && a.packed_a == b.packed_a &&
         a.border == b.border;
}

bool are_equal(const Pieces& a, const Pieces& b) {
  return std::ranges::equal(a.literals, b.literals,
                            [](const Literal* x, const Literal* y) { return *x == *y; }) &&
         (a.literals.size() == 1 || a.dim == b.dim);
}

bool are_equal(const KernelBuffer& a, const KernelBuffer& b) {
  if (a.elements != b.elements || a.home != b.home || a.layout != b.layout || a.vnni_dim != b.vnni_dim ||
      a.device != b.device || a.host_type != b.host_type)
    return false;
  return a.home != Home::Constant || a.made_of() || are_equal(*pieces_of(a.value), *pieces_of(b.value));
}

class Comparison {
 public:
  Comparison(const KernelGraph& a, const KernelGraph& b) : a_(a), b_(b) {}

  std::string run() const {
    if (a_.name != b_.name || a_.inputs != b_.inputs || a_.outputs != b_.outputs ||
        a_.buffers.size() != b_.buffers.size() || a_.nodes.size() != b_.nodes.size() ||
        a_.groups.size() != b_.groups.size())
      return "names, inputs, outputs, or how many buffers, nodes or groups there are";
    for (size_t i = 0; i < a_.buffers.size(); ++i)
      if (!are_equal(a_.buffers[{i}], b_.buffers[{i}]))
        return fmt::format("buffer {}", a_.buffers[{i}].name());
    if (a_.groups.empty())
      for (size_t i = 0; i < a_.nodes.size(); ++i)
        if (!are_equal_nodes(i, i))
          return lowering::print(a_.nodes[i], a_);
    for (size_t i = 0; i < a_.groups.size(); ++i)
      if (std::string found = compare(a_.groups[i], b_.groups[i]); !found.empty())
        return fmt::format("group {}: {}", i, found);
    return "";
  }

 private:
  std::string compare(const Group& a, const Group& b) const {
    if (a.pattern != b.pattern || a.rows != b.rows || a.tile != b.tile || a.nodes.size() != b.nodes.size() ||
        a.parts.size() != b.parts.size())
      return "pattern or size";
    for (size_t i = 0; i < a.nodes.size(); ++i)
      if (!are_equal_nodes(a.nodes[i], b.nodes[i]))
        return lowering::print(a_.nodes[a.nodes[i]], a_);
    for (size_t i = 0; i < a.parts.size(); ++i)
      if (std::string found = compare(a.parts[i], b.parts[i]); !found.empty())
        return found;
    return "";
  }

  bool are_equal_nodes(size_t i, size_t j) const {
    const KernelNode &a = a_.nodes[i], &b = b_.nodes[j];
    return a.kind == b.kind && a.stage.has_value() == b.stage.has_value() &&
           (!a.stage || are_equal(*a.stage, *b.stage)) && a.nest == b.nest && a.operands == b.operands &&
           a.results == b.results && a.reads == b.reads && a.writes == b.writes && a.after == b.after &&
           a.stays == b.stays && a.loop == b.loop && a.sources == b.sources &&
           (a.kind != KernelNode::Kind::Host || lowering::print(a, a_) == lowering::print(b, b_));
  }

  const KernelGraph &a_, &b_;
};

}  // namespace

std::string difference(const KernelGraph& a, const KernelGraph& b) { return Comparison(a, b).run(); }

}  // namespace tenon::lowering
