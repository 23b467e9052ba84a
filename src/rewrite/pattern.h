// pattern.h — the shape of a piece of a graph, written like the formula it looks for:
//
//   const Pattern x = any("x"), c = constant("c");
//   (x + c) * 2.0                      any sum with a constant, doubled
//   op("transpose", {{"x", x}})        by the name of the op and its operands
//
//   together({unary("sin", x), unary("cos", x)})   two values of one x, to be replaced at once
//
// Operands of a commutative op are tried in both orders. A pattern that occurs twice stands for one value.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace tenon {

class Pattern;
using NamedPatterns = std::vector<std::pair<std::string, Pattern>>;

struct PatternNode;

class Pattern {
 public:
  Pattern(double number);  // every element is exactly this number, and a zero has its sign
  explicit Pattern(std::shared_ptr<const PatternNode> node) : node_(std::move(node)) {}

  // The same, but the attribute must have this value.
  Pattern with(std::string_view attribute, Attribute value) const;
  // The same, but its value must have no other use: what replaces the match would compute it a second time.
  Pattern once() const;
  // The same, but the value is the result of this index.
  Pattern result(int64_t index) const;

  const PatternNode& node() const { return *node_; }
  std::string to_string() const;

  friend bool operator==(const Pattern&, const Pattern&) = default;

 private:
  std::shared_ptr<const PatternNode> node_;
};

// What a pattern is: one of these kinds. Patterns are made by the functions below.
struct PatternNode {
  enum class Kind : uint8_t {
    Any,       // any value
    Constant,  // a value that is fixed before the graph runs: made of constants and parameters alone
    Number,    // a constant, all of whose elements are `number`
    About,     // the same, but for the rounding of its dtype
    Op,        // a result of a node of this op
    Either,    // one of several patterns
    Chain,     // op applied to all of `parts`, in any order and grouping: a product, a sum
    Computed,  // a value that a region computes of its only part, with one of `ops` in it
    Together,  // several values at once, one for each of `parts`
  };
  Kind kind;
  std::string name = {};  // of a value; or of the op
  // One of these, whatever its operands, instead of one of that name; or of Computed.
  std::set<std::string, std::less<>> ops = {};
  double number = 0;
  NamedPatterns operands = {};
  std::vector<Pattern> parts = {};  // of Either, Chain, Computed and Together
  std::vector<std::pair<std::string, Attribute>> attributes = {};
  std::optional<int64_t> result = 0;  // nothing: any result
  bool once = false;
};

Pattern any(std::string_view name);
Pattern constant(std::string_view name);
Pattern about(double number);
Pattern op(std::string_view name, NamedPatterns operands);
// Any result of a node of one of these ops, whatever its operands: for what a function will look at. The name
// is for people.
Pattern result_of(std::string_view op);
Pattern result_of(std::string_view name, std::set<std::string, std::less<>> ops);
Pattern either(std::vector<Pattern> alternatives);
// `wrapped` made of `x`, or `x` alone: optionally([](Pattern x) { return op("cast", {{"x", x}}); }, x).
Pattern optionally(const std::function<Pattern(Pattern)>& wrap, const Pattern& x);
// Whatever is computed of `x` and fixed values by a few nodes, one of which has one of these ops. What it is
// can be found out by running it: see probe.h.
Pattern computed_from(const Pattern& x, std::set<std::string, std::less<>> ops);
// Several results, for the whole of a rule's match or replacement. Each is an op, and has a part in common
// with the others: from there it is looked for among the users of values.
Pattern together(std::vector<Pattern> results);
Pattern product(std::vector<Pattern> factors);
Pattern sum(std::vector<Pattern> terms);

Pattern operator+(const Pattern& a, const Pattern& b);
Pattern operator-(const Pattern& a, const Pattern& b);
Pattern operator*(const Pattern& a, const Pattern& b);
Pattern operator/(const Pattern& a, const Pattern& b);
Pattern operator-(const Pattern& x);
Pattern unary(std::string_view op, const Pattern& x);  // an op whose operand is called x

}  // namespace tenon
