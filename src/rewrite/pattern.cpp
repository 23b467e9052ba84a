#include "rewrite/pattern.h"

#include "ir/print.h"

namespace tenon {
namespace {

Pattern make(PatternNode node) { return Pattern(std::make_shared<const PatternNode>(std::move(node))); }

Pattern binary(std::string_view name, const Pattern& a, const Pattern& b) {
  return op(name, {{"a", a}, {"b", b}});
}

// A number as it is written in a formula: 2, 0.5, 0.7071.
std::string number_text(double number) { return fmt::format("{:.6g}", number); }

std::string list(const std::vector<Pattern>& parts, std::string_view separator) {
  std::string text;
  for (const Pattern& part : parts)
    text += (text.empty() ? "" : std::string(separator)) + part.to_string();
  return text;
}

std::string infix(std::string_view op_name) {
  static const std::map<std::string_view, std::string_view> symbols = {
      {"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}};
  const auto it = symbols.find(op_name);
  return it == symbols.end() ? "" : std::string(it->second);
}

std::string op_text(const PatternNode& node) {
  if (const std::string symbol = infix(node.name); !symbol.empty())
    return "(" + node.operands[0].second.to_string() + symbol + node.operands[1].second.to_string() + ")";
  std::string text;
  for (const auto& [name, pattern] : node.operands)
    text += (text.empty() ? "" : ", ") + pattern.to_string();
  for (const auto& [name, value] : node.attributes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, print(value));
  if (!node.ops.empty())
    text += text.empty() ? "…" : ", …";
  return node.name + "(" + text + ")";
}

}  // namespace

Pattern::Pattern(double number)
    : Pattern(std::make_shared<const PatternNode>(
          PatternNode{.kind = PatternNode::Kind::Number, .number = number})) {}

Pattern Pattern::with(std::string_view attribute, Attribute value) const {
  PatternNode copy = *node_;
  CHECK(copy.kind == PatternNode::Kind::Op, "only an op has attributes");
  copy.attributes.emplace_back(attribute, std::move(value));
  return make(std::move(copy));
}

Pattern Pattern::once() const {
  PatternNode copy = *node_;
  copy.once = true;
  return make(std::move(copy));
}

Pattern Pattern::result(int64_t index) const {
  PatternNode copy = *node_;
  copy.result = index;
  return make(std::move(copy));
}

std::string Pattern::to_string() const {
  using Kind = PatternNode::Kind;
  switch (node_->kind) {
    case Kind::Any:
    case Kind::Constant:
      return node_->name;
    case Kind::Number:
    case Kind::About:
      return number_text(node_->number);
    case Kind::Op:
      return op_text(*node_);
    case Kind::Either:
      return "either(" + list(node_->parts, " | ") + ")";
    case Kind::Chain:
      return "(" + list(node_->parts, infix(node_->name)) + ")";
    case Kind::Computed:
      return fmt::format("computed_from({}, {})", node_->parts.front().to_string(),
                         fmt::join(node_->ops, " | "));
    case Kind::Together:
      return list(node_->parts, ", ");
  }
  CHECK(false, "a pattern of no kind");
}

Pattern any(std::string_view name) {
  return make({.kind = PatternNode::Kind::Any, .name = std::string(name)});
}

Pattern constant(std::string_view name) {
  return make({.kind = PatternNode::Kind::Constant, .name = std::string(name)});
}

Pattern about(double number) { return make({.kind = PatternNode::Kind::About, .number = number}); }

Pattern op(std::string_view name, NamedPatterns operands) {
  return make({.kind = PatternNode::Kind::Op, .name = std::string(name), .operands = std::move(operands)});
}

Pattern result_of(std::string_view op) { return result_of(op, {std::string(op)}); }

Pattern result_of(std::string_view name, std::set<std::string, std::less<>> ops) {
  return make({.kind = PatternNode::Kind::Op,
               .name = std::string(name),
               .ops = std::move(ops),
               .result = std::nullopt});
}

Pattern either(std::vector<Pattern> alternatives) {
  return make({.kind = PatternNode::Kind::Either, .parts = std::move(alternatives)});
}

Pattern optionally(const std::function<Pattern(Pattern)>& wrap, const Pattern& x) {
  return either({wrap(x), x});
}

Pattern computed_from(const Pattern& x, std::set<std::string, std::less<>> ops) {
  return make({.kind = PatternNode::Kind::Computed, .ops = std::move(ops), .parts = {x}});
}

Pattern together(std::vector<Pattern> results) {
  return make({.kind = PatternNode::Kind::Together, .parts = std::move(results)});
}

Pattern product(std::vector<Pattern> factors) {
  return make({.kind = PatternNode::Kind::Chain, .name = "mul", .parts = std::move(factors)});
}

Pattern sum(std::vector<Pattern> terms) {
  return make({.kind = PatternNode::Kind::Chain, .name = "add", .parts = std::move(terms)});
}

Pattern operator+(const Pattern& a, const Pattern& b) { return binary("add", a, b); }
Pattern operator-(const Pattern& a, const Pattern& b) { return binary("sub", a, b); }
Pattern operator*(const Pattern& a, const Pattern& b) { return binary("mul", a, b); }
Pattern operator/(const Pattern& a, const Pattern& b) { return binary("div", a, b); }
Pattern operator-(const Pattern& x) { return unary("neg", x); }
Pattern unary(std::string_view name, const Pattern& x) { return op(name, {{"x", x}}); }

}  // namespace tenon
