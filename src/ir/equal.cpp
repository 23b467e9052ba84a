#include "ir/equal.h"

#include <unordered_map>

#include "base/hash.h"

namespace tenon {
namespace {

// Values by the order in which they are made, which is what stays the same under renaming.
class Numbering {
 public:
  explicit Numbering(const Graph& graph) {
    for (Value input : graph.inputs())
      add(input);
  }
  void add(Value value) { numbers_.emplace(value.data(), numbers_.size()); }
  size_t of(Value value) const { return numbers_.at(value.data()); }

 private:
  std::unordered_map<const ValueData*, size_t> numbers_;
};

// The operands of a node with the segments they stand in, so that f(a, b=x) and f(a, c=x) differ.
std::vector<std::pair<std::string_view, std::vector<Value>>> segments(const Node& node) {
  std::vector<std::pair<std::string_view, std::vector<Value>>> all;
  for (const OperandDecl& decl : node.op().operands)
    all.emplace_back(decl.name, node.ins(decl.name));
  for (std::string_view late : node.late_names())
    all.emplace_back(late, node.ins(late));
  return all;
}

}  // namespace

uint64_t structural_hash(const Graph& graph) {
  Numbering numbers(graph);
  uint64_t h = static_cast<uint64_t>(graph.input_count());
  for (Value input : graph.inputs())
    h = hash_combine(h, hash(input.type()));
  for (const Node* node : graph.nodes()) {
    h = hash_combine(h, hash_string(node->op().name));
    for (const auto& [name, values] : segments(*node)) {
      h = hash_combine(h, values.size());
      for (Value value : values)
        h = hash_combine(h, numbers.of(value));
    }
    for (const auto& [name, attribute] : node->attributes())
      h = hash_combine(hash_combine(h, hash_string(name)), attribute.hash());
    for (const auto& region : node->regions())
      h = hash_combine(h, structural_hash(*region));
    for (Value result : node->results()) {
      h = hash_combine(h, hash(result.type()));
      numbers.add(result);
    }
  }
  for (Value output : graph.outputs())
    h = hash_combine(h, numbers.of(output));
  return h;
}

std::string difference(const Graph& a, const Graph& b) {
  if (a.input_count() != b.input_count())
    return fmt::format("{} inputs and {}", a.input_count(), b.input_count());
  for (int64_t i = 0; i < a.input_count(); ++i)
    if (!(a.input(i).type() == b.input(i).type()))
      return fmt::format("input {} is {} and {}", i, a.input(i).type(), b.input(i).type());
  Numbering in_a(a), in_b(b);
  const std::vector<Node*> nodes_a = a.nodes(), nodes_b = b.nodes();
  for (size_t i = 0; i < std::min(nodes_a.size(), nodes_b.size()); ++i) {
    const Node& x = *nodes_a[i];
    const Node& y = *nodes_b[i];
    const auto differ = [&](const std::string& what) {
      return fmt::format("{} and {}: {}", x.describe(), y.describe(), what);
    };
    if (&x.op() != &y.op())
      return differ(fmt::format("{} and {}", x.op().name, y.op().name));
    const auto operands_x = segments(x), operands_y = segments(y);
    if (x.late_names() != y.late_names())
      return differ("different late attributes");
    for (size_t s = 0; s < operands_x.size(); ++s) {
      const auto& [name, values_x] = operands_x[s];
      const auto& values_y = operands_y[s].second;
      if (values_x.size() != values_y.size())
        return differ(fmt::format("{} {} operands and {}", values_x.size(), name, values_y.size()));
      for (size_t k = 0; k < values_x.size(); ++k)
        if (in_a.of(values_x[k]) != in_b.of(values_y[k]))
          return differ(fmt::format("operand {} is another value", name));
    }
    for (const auto& [name, attribute] : x.attributes()) {
      const auto it = y.attributes().find(name);
      if (it == y.attributes().end() || !(attribute == it->second))
        return differ(fmt::format("attribute {} differs", name));
    }
    if (x.attributes().size() != y.attributes().size() || x.result_count() != y.result_count())
      return differ("different numbers of attributes or results");
    for (size_t r = 0; r < x.regions().size(); ++r)
      if (const std::string inner = difference(*x.regions()[r], *y.regions()[r]); !inner.empty())
        return differ(fmt::format("in {}: {}", x.op().regions[r], inner));
    for (int64_t r = 0; r < x.result_count(); ++r) {
      if (!(x.result(r).type() == y.result(r).type()))
        return differ(fmt::format("result {} is {} and {}", r, x.result(r).type(), y.result(r).type()));
      in_a.add(x.result(r));
      in_b.add(y.result(r));
    }
  }
  if (nodes_a.size() != nodes_b.size())
    return fmt::format("{} nodes and {}", nodes_a.size(), nodes_b.size());
  const std::vector<Value> outputs_a = a.outputs(), outputs_b = b.outputs();
  if (outputs_a.size() != outputs_b.size())
    return fmt::format("{} outputs and {}", outputs_a.size(), outputs_b.size());
  for (size_t i = 0; i < outputs_a.size(); ++i)
    if (in_a.of(outputs_a[i]) != in_b.of(outputs_b[i]))
      return fmt::format("output {} is another value", i);
  return "";
}

}  // namespace tenon
