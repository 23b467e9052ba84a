// rule.h — a rewrite rule is data: what it looks for, what takes its place, under which conditions, and how
// exact it is.
//
//   {.name = "mul-by-one", .match = x * 1.0, .replace = x, .numerics = Numerics::BitExact, …}
//
// Every rule carries a graph in which it fires and one like it in which it must not. Tests draw dtypes, sizes
// and elements for the first, and hold the rule to its numerics class; `tenon rules` shows them.
#pragma once

#include "rewrite/journal.h"
#include "rewrite/match.h"

namespace tenon {

// What must hold of a match besides its shape: as it is said to people, and to ask.
struct Condition {
  std::string text;
  std::function<bool(const Match&)> holds;
  // Whether a user who wonders why the rule did not fire wants to hear that this did not hold. It is not so
  // for conditions that merely tell one case from another.
  bool worth_a_remark = false;
};

// What takes the place of a match: a pattern whose parts the match has found, or a function.
class Replacement {
 public:
  Replacement(const Pattern& pattern);
  Replacement(double number) : Replacement(Pattern(number)) {}
  // `formula` is for people. `make` creates nodes at the insertion point; it gives no Value where it finds
  // that the rule does not apply after all.
  Replacement(std::string formula, std::function<Value(const Match&)> make)
      : Replacement(std::move(formula), [make = std::move(make)](const Match& match) {
          return std::vector<Value>{make(match)};
        }) {}
  // For several results together, in the order of the match.
  Replacement(std::string formula, std::function<std::vector<Value>(const Match&)> make)
      : formula_(std::move(formula)), make_(std::move(make)) {}

  const std::string& formula() const { return formula_; }
  std::vector<Value> make(const Match& match) const { return make_(match); }

 private:
  std::string formula_;
  std::function<std::vector<Value>(const Match&)> make_;
};

struct Rule {
  std::string_view name;
  Pattern match;
  Replacement replace;
  std::vector<Condition> when = {};
  Numerics numerics;
  // Graphs in the text form, from the inputs on. T stands for any dtype that the ops take; sizes may be
  // symbols.
  std::string_view fires;
  std::string_view stays;
  // Whether no pass but equality saturation applies it, which weighs what comes of it: alone it may make
  // things worse, or undo another.
  bool for_saturation = false;

  std::string to_string() const;  // x * 1 => x if …
};

using Rules = std::vector<Rule>;
Rules joined(const std::vector<const Rules*>& all);

// Conditions that many rules have.
Condition is_integer(const Pattern& x);
Condition is_float(const Pattern& x);
// Adding, negating and so on are as exact in these as one expects; narrower floats saturate or have no sign.
Condition has_ordinary_dtype(const Pattern& x);
Condition is_ordinary_float(const Pattern& x);
Condition same_type(const Pattern& a, const Pattern& b);
Condition is_small(const Pattern& x);  // all its elements are known: it is a constant of few elements
Condition is_not_fixed(const Pattern& x);
Condition is_one_number(const Pattern& c);  // all its elements are the same

// A replacement: every element is `number`, in a tensor of the type of `x`.
Replacement filled_like(const Pattern& x, double number);

}  // namespace tenon
