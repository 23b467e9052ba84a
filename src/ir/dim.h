// dim.h — the size of one dimension: an integer, an expression over symbols, or unknown.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct DimExpression;

// A Dim is an immutable value, kept in a normal form (see dim.cpp), so that sizes which were computed in
// different ways compare equal: (n+2*1-3)/2+1 and (n+1)/2 are one Dim. An integer costs no allocation.
//
// What may be assumed: every symbol is a size, so it is >= 0; a divisor is not zero. Arithmetic never fails:
// what overflows 64 bits, divides by the integer 0 or grows beyond reason becomes unknown, and unknown stays
// unknown (but 0 * unknown is 0).
class Dim {
 public:
  Dim() : unknown_(true) {}
  Dim(int64_t value) : value_(value) {}  // implicit: sizes are mostly integers
  static Dim symbol(std::string_view name);

  bool is_unknown() const { return unknown_; }
  bool is_constant() const { return !unknown_ && !expression_; }
  bool is_symbol() const;  // exactly one symbol, and nothing else
  std::optional<int64_t> constant() const { return is_constant() ? std::optional(value_) : std::nullopt; }

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);  // rounds towards minus infinity
  friend Dim ceil_div(const Dim& a, const Dim& b);   // rounds towards plus infinity
  friend Dim mod(const Dim& a, const Dim& b);        // a - b * floor_div(a, b): has the sign of b
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);

  // The same normal form. Two unknowns are the same form, but nobody can prove them the same size.
  friend bool operator==(const Dim& a, const Dim& b);
  friend bool provably_equal(const Dim& a, const Dim& b) { return !a.is_unknown() && a == b; }
  uint64_t hash() const;

  // 2*n, m+n-1, floor((n+1)/2), max(n-3,0), mod(n,4), ?. A symbol which is not [A-Za-z_][A-Za-z0-9_.]* stands
  // in backticks, where a backtick of its own is doubled: `batch size`. Parses back to an equal Dim.
  std::string to_string() const;
  // Also reads ceil(a/b), blanks, and parentheses anywhere. Bad text is the user's fault.
  static Dim parse(std::string_view text);

  // All symbols are replaced at once; those without a replacement stay.
  Dim substitute(const std::map<std::string, Dim>& replacements) const;
  // Nothing when a symbol that matters is not bound, or on overflow or division by zero.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t>& bindings) const;
  std::vector<std::string> symbols() const;  // sorted, unique
  bool mentions(std::string_view symbol) const;

  // An integer that no value of the symbols goes below; nothing when none is known.
  std::optional<int64_t> lower_bound() const;
  // One that no value goes above: 2*floor((n+7)/8)-floor((n+3)/4) is 1 at most, and min(n,224)-n is 0.
  std::optional<int64_t> upper_bound() const;

 private:
  friend struct DimExpression;  // the inside: dim_expression.h

  int64_t value_ = 0;
  std::shared_ptr<const DimExpression> expression_;  // null for integers and unknown
  bool unknown_ = false;
};

// a / b where that provably leaves no remainder: (12*n*m) / (3*n) is 4*m.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b);

}  // namespace tenon

template <>
struct fmt::formatter<tenon::Dim> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const tenon::Dim& dim, Context& context) const {
    return fmt::formatter<std::string_view>::format(dim.to_string(), context);
  }
};
