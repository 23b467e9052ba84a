#include "ops/data.h"

#include <unordered_set>

#include "ir/evaluate.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Literal& value = n.attr("value");
  return {Type::tensor(value.dtype(), Shape::of(value.extents()))};
}

Data eval(const Call& c) {
  // Not a copy of the attribute: a literal remembers what it read.
  return {c.node().attr("value").as<Literal>().tensor()};
}

}  // namespace

const Family& data_ops() {
  static const Family ops = {
      {.name = "constant",
       .doc = "a value fixed in the program",
       .category = Category::Data,
       .attributes = {{"value", AttributeKind::Literal, "the value"}},
       .results = {{"y", "any"}},
       .infer = infer,
       .eval = eval},
      {.name = "parameter",
       .doc = "a trained weight: a constant that has a name, and that gradients may be taken for",
       .category = Category::Data,
       .attributes = {{"name", AttributeKind::String, "the name the user knows it by"},
                      {"value", AttributeKind::Literal, "the value"}},
       .results = {{"y", "any"}},
       .infer = infer,
       .eval = eval},
  };
  return ops;
}

Value constant(Graph& graph, Literal value) {
  return graph.create("constant", {}, {{"value", std::move(value)}})->result();
}

Value scalar(Graph& graph, DType dtype, double value) { return constant(graph, filled(dtype, {}, value)); }

Value int_vector(Graph& graph, const std::vector<int64_t>& values) {
  return constant(graph, Tensor::of(values));
}

Value parameter(Graph& graph, std::string name, Literal value) {
  Value result = graph.create("parameter", {}, {{"name", name}, {"value", std::move(value)}})->result();
  result.set_name(std::move(name));
  return result;
}

const Literal* literal_of(const Node& node) {
  return node.is("constant") || node.is("parameter") ? &node.attr("value").as<Literal>() : nullptr;
}

const Literal* literal_of(Value value) { return value.is_input() ? nullptr : literal_of(*value.node()); }

namespace {

using Seen = std::unordered_set<const ValueData*>;

std::string name_by_origin(Value value, const std::function<bool(Value)>& is_kept, Seen& seen) {
  std::string name;
  int64_t most = -1;
  for (Value operand : value.node()->operands()) {
    if (is_kept(operand) || !seen.insert(operand.data()).second)
      continue;
    const Node& maker = *operand.node();
    std::string own = maker.is("parameter") ? maker.attr("name").as<std::string>() : operand.name();
    if (own.empty())
      own = name_by_origin(operand, is_kept, seen);
    if (const int64_t count = element_count(*operand.shape().extents()); !own.empty() && count > most) {
      name = std::move(own);
      most = count;
    }
  }
  return name;
}

}  // namespace

std::string name_by_origin(Value value, const std::function<bool(Value)>& is_kept) {
  Seen seen;
  return name_by_origin(value, is_kept, seen);
}

}  // namespace tenon
