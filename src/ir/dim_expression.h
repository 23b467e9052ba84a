// dim_expression.h — the inside of a symbolic Dim, for the dim*.cpp files and those who emit code for it.
// dim.cpp explains the form.
#pragma once

#include <compare>
#include <limits>

#include "ir/dim.h"

namespace tenon {

enum class DimFunction { Symbol, FloorDiv, Mod, Max, Min };

// A symbol, or a function of dims that the polynomial around it treats like a symbol.
struct DimAtom {
  DimFunction function;
  std::string name;           // of a symbol
  std::vector<Dim> operands;  // of a function
  uint64_t hash;
  size_t size;
};
using DimFactor = std::shared_ptr<const DimAtom>;

struct DimTerm {
  int64_t coefficient;             // not zero
  std::vector<DimFactor> factors;  // sorted; none in the term that is an integer
};

struct DimExpression {
  std::vector<DimTerm> terms;  // sorted, no two with the same factors
  uint64_t hash;
  size_t size;

  // Null for integers and unknown.
  static const DimExpression* of(const Dim& dim) { return dim.expression_.get(); }
  // The only way into the normal form: terms may come in any order, repeat, and be zero.
  static Dim sum(std::vector<DimTerm> terms);
};

// Counts terms, factors and functions, all the way down. What is larger becomes unknown, so that a hostile
// model costs little: this bounds the number of terms, their degree and the nesting at once.
constexpr size_t maximum_dim_size = 128;

// The one integer that has no negative. It never occurs as a coefficient.
constexpr int64_t smallest_integer = std::numeric_limits<int64_t>::min();

// The terms of a known dim, highest first. An integer is one term, zero is none.
std::vector<DimTerm> terms_of(const Dim& dim);
// The atom that the dim consists of, if it is just one.
const DimAtom* get_atom(const Dim& dim);
// a without the factors of b, if it has them all.
std::optional<std::vector<DimFactor>> remove_factors(const DimTerm& a, const DimTerm& b);
// The function of these operands as they are: whoever calls this has simplified them.
Dim make_atom(DimFunction function, std::vector<Dim> operands);
// The function of these operands, simplified.
Dim apply_function(DimFunction function, const std::vector<Dim>& operands);

// Total orders, the same in every run. Integers come after expressions.
std::strong_ordering compare(const Dim& a, const Dim& b);
std::strong_ordering compare(const DimFactor& a, const DimFactor& b);
inline bool precedes(const DimFactor& a, const DimFactor& b) { return compare(a, b) < 0; }

// Where the values of a dim lie; an absent bound is unknown or infinite.
struct DimBounds {
  std::optional<int64_t> lower;
  std::optional<int64_t> upper;
};
DimBounds find_bounds(const Dim& dim);

// 64-bit arithmetic that notices when the result does not fit.
inline std::optional<int64_t> add_integers(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}
inline std::optional<int64_t> multiply_integers(int64_t a, int64_t b) {
  int64_t result;
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
}

// Rounds towards minus infinity, where C++ rounds towards zero. Wants b != 0, and not smallest_integer / -1.
inline int64_t floor_div_integers(int64_t a, int64_t b) {
  const bool rounded_up = a % b != 0 && (a < 0) != (b < 0);
  return a / b - (rounded_up ? 1 : 0);
}

}  // namespace tenon
