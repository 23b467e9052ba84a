#include "rewrite/rule.h"

#include "ops/data.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// Creates what a pattern describes. A number becomes a constant of the dtype of what stands beside it.
Value make(const Pattern& pattern, const Match& match, DType dtype_of_numbers) {
  using Kind = PatternNode::Kind;
  const PatternNode& node = pattern.node();
  Graph& graph = match.root().graph();
  if (match.has(pattern))
    return match[pattern];
  if (node.kind == Kind::Number || node.kind == Kind::About)
    return scalar(graph, dtype_of_numbers, node.number);
  CHECK(node.kind == Kind::Op && node.ops.empty(), "{} cannot be made", pattern.to_string());
  DType dtype = dtype_of_numbers;
  for (const auto& [name, operand] : node.operands)
    if (match.has(operand) && match[operand].type().is_tensor())
      dtype = match[operand].dtype();
  std::vector<Operand> operands;
  for (const auto& [name, operand] : node.operands) {
    const Value value = make(operand, match, dtype);
    if (!operands.empty() && operands.back().name == name)
      operands.back().values.push_back(value);
    else
      operands.emplace_back(name, value);
  }
  Attributes attributes;
  for (const auto& [name, value] : node.attributes)
    attributes.emplace(name, value);
  return graph.create(node.name, std::move(operands), std::move(attributes))->result(node.result.value_or(0));
}

std::vector<Value> make_all(const Pattern& pattern, const Match& match) {
  const PatternNode& node = pattern.node();
  if (node.kind != PatternNode::Kind::Together)
    return {make(pattern, match, match.root().dtype())};
  std::vector<Value> values;
  for (const Pattern& part : node.parts)
    values.push_back(make(part, match, match.roots().at(values.size()).dtype()));
  return values;
}

bool is_ordinary(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16 ||
         is_signed(dtype);
}

}  // namespace

Replacement::Replacement(const Pattern& pattern)
    : formula_(pattern.to_string()),
      make_([pattern](const Match& match) { return make_all(pattern, match); }) {}

std::string Rule::to_string() const {
  std::string text = match.to_string() + " => " + replace.formula();
  for (const Condition& condition : when)
    text += (&condition == &when.front() ? " if " : " and ") + condition.text;
  return text;
}

Rules joined(const std::vector<const Rules*>& all) {
  Rules joined;
  for (const Rules* rules : all)
    joined.insert(joined.end(), rules->begin(), rules->end());
  return joined;
}

Condition is_integer(const Pattern& x) {
  return {x.to_string() + " is an integer", [=](const Match& m) { return is_integer(m[x].dtype()); }};
}

Condition is_float(const Pattern& x) {
  return {x.to_string() + " is a float", [=](const Match& m) { return is_float(m[x].dtype()); }};
}

Condition has_ordinary_dtype(const Pattern& x) {
  return {x.to_string() + " is a float of 16 bits or more or a signed integer",
          [=](const Match& m) { return is_ordinary(m[x].dtype()); }};
}

Condition is_ordinary_float(const Pattern& x) {
  return {x.to_string() + " is a float of 16 bits or more",
          [=](const Match& m) { return is_float(m[x].dtype()) && is_ordinary(m[x].dtype()); }};
}

Condition same_type(const Pattern& a, const Pattern& b) {
  return {fmt::format("{} and {} have one type", a.to_string(), b.to_string()),
          [=](const Match& m) { return m[a].type() == m[b].type(); }};
}

Condition is_small(const Pattern& x) {
  return {x.to_string() + " is a small constant",
          [=](const Match& m) { return known_elements(m[x]) != nullptr; }};
}

Condition is_not_fixed(const Pattern& x) {
  return {x.to_string() + " is not constant", [=](const Match& m) { return !is_fixed(m[x]); }};
}

Condition is_one_number(const Pattern& c) {
  return {c.to_string() + " is one number", [=](const Match& m) { return m.number(c).has_value(); }};
}

Replacement filled_like(const Pattern& x, double number) {
  return {fmt::format("{:.6g}", number),
          [=](const Match& m) { return fill(shape_of(m[x]), narrow<double>(m[x].dtype(), {}, {{number}})); }};
}

}  // namespace tenon
