// dim_functions.cpp — floor division, modulo, maximum and minimum of dims: what they simplify to, and their
// bounds.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ir/dim_expression.h"

namespace tenon {
namespace {

using Bound = std::optional<int64_t>;

Bound add_bounds(Bound a, Bound b) { return a && b ? add_integers(*a, *b) : std::nullopt; }
Bound multiply_bounds(Bound a, Bound b) { return a && b ? multiply_integers(*a, *b) : std::nullopt; }
bool is_at_least(Bound bound, int64_t value) { return bound && *bound >= value; }

DimBounds find_floor_bounds(const DimBounds& a, const DimBounds& b) {
  // A divisor is never zero, so one that is not negative is at least 1.
  if (!is_at_least(b.lower, 0))
    return {};
  const int64_t smallest_divisor = std::max<int64_t>(*b.lower, 1);
  const bool is_fixed = b.upper == smallest_divisor;
  // A larger divisor moves the quotient towards 0 (towards -1, when it is negative).
  DimBounds result;
  if (a.lower)
    result.lower = *a.lower < 0 || is_fixed ? floor_div_integers(*a.lower, smallest_divisor) : 0;
  if (a.upper)
    result.upper = *a.upper >= 0 || is_fixed ? floor_div_integers(*a.upper, smallest_divisor) : -1;
  return result;
}

DimBounds find_mod_bounds(const DimBounds& a, const DimBounds& b) {
  if (!is_at_least(b.lower, 0))
    return {};
  DimBounds result{0, add_bounds(b.upper, -1)};
  if (is_at_least(a.lower, 0) && a.upper)
    result.upper = result.upper ? std::min(*result.upper, *a.upper) : *a.upper;
  return result;
}

DimBounds find_atom_bounds(const DimAtom& atom) {
  if (atom.function == DimFunction::Symbol)
    return {0, std::nullopt};
  DimBounds result = find_bounds(atom.operands.front());
  for (size_t i = 1; i < atom.operands.size(); ++i) {
    const DimBounds next = find_bounds(atom.operands[i]);
    switch (atom.function) {
      case DimFunction::Symbol:
        break;
      case DimFunction::FloorDiv:
        result = find_floor_bounds(result, next);
        break;
      case DimFunction::Mod:
        result = find_mod_bounds(result, next);
        break;
      case DimFunction::Max:  // to std::max, an absent bound is less than any
        result.lower = std::max(result.lower, next.lower);
        result.upper = result.upper && next.upper ? std::max(result.upper, next.upper) : std::nullopt;
        break;
      case DimFunction::Min:
        result.lower = std::min(result.lower, next.lower);
        result.upper = result.upper && next.upper ? std::min(result.upper, next.upper)
                                                  : std::max(result.upper, next.upper);
        break;
    }
  }
  return result;
}

DimBounds find_term_bounds(const DimTerm& term) {
  DimBounds product{1, 1};
  for (const DimFactor& factor : term.factors) {
    const DimBounds next = find_atom_bounds(*factor);
    if (term.factors.size() == 1)
      product = next;
    else if (is_at_least(next.lower, 0))
      product = {multiply_bounds(product.lower, next.lower), multiply_bounds(product.upper, next.upper)};
    else
      return {};
  }
  product = {multiply_bounds(product.lower, term.coefficient),
             multiply_bounds(product.upper, term.coefficient)};
  if (term.coefficient < 0)
    std::swap(product.lower, product.upper);
  return product;
}

bool is_provably_at_least(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant())
    return *a.constant() >= *b.constant();
  return is_at_least((a - b).lower_bound(), 0);
}

// 0 <= a < b, so that dividing changes nothing.
bool is_provably_remainder(const Dim& a, const Dim& b) {
  return is_provably_at_least(a, 0) && is_provably_at_least(b, a + 1);
}

// A division that was made simpler:
//     floor(a/b) = whole + floor(numerator/divisor)
//     mod(a,b)   = offset + scale * mod(numerator,divisor)
struct Division {
  Dim numerator;
  Dim divisor;
  Dim whole = 0;
  Dim scale = 1;
  Dim offset = 0;
};

// The largest term that divides all of both: 2*n for 4*m*n+6*n and 8*n.
Dim find_common_term(const Dim& a, const Dim& b) {
  std::vector<DimTerm> terms = terms_of(a);
  for (DimTerm& term : terms_of(b))
    terms.push_back(std::move(term));
  DimTerm common = terms.front();
  for (const DimTerm& term : terms) {
    common.coefficient = std::gcd(common.coefficient, term.coefficient);
    std::vector<DimFactor> shared;
    std::set_intersection(common.factors.begin(), common.factors.end(), term.factors.begin(),
                          term.factors.end(), std::back_inserter(shared), precedes);
    common.factors = std::move(shared);
  }
  return DimExpression::sum({common});
}

// How often b goes into a, term by term, where b is one term. An integer rounds down, so that what remains of
// it is not negative; other terms round towards zero, so that what remains of them keeps its sign (-n is not
// turned into 3*n-4*n, which would hide that it is never positive).
Dim find_whole_part(const Dim& a, const Dim& b) {
  const std::vector<DimTerm> divisor = terms_of(b);
  if (divisor.size() != 1)
    return 0;
  std::vector<DimTerm> whole;
  for (const DimTerm& term : terms_of(a)) {
    auto factors = remove_factors(term, divisor[0]);
    if (!factors)
      continue;
    const int64_t quotient = term.factors.empty()
                                 ? floor_div_integers(term.coefficient, divisor[0].coefficient)
                                 : term.coefficient / divisor[0].coefficient;
    whole.push_back({quotient, *std::move(factors)});
  }
  return DimExpression::sum(std::move(whole));
}

int64_t get_integer_term(const std::vector<DimTerm>& terms) {
  return terms.empty() || !terms.back().factors.empty() ? 0 : terms.back().coefficient;
}

Division simplify_division(const Dim& a, const Dim& b) {
  Division result{.numerator = a, .divisor = b};
  auto& [numerator, divisor, whole, scale, offset] = result;
  while (!numerator.is_unknown() && !divisor.is_unknown()) {
    if (const auto exact = divide_exactly(numerator, divisor)) {
      whole = whole + *exact;
      numerator = 0;
      return result;
    }
    if (const Dim common = find_common_term(numerator, divisor); common != 1) {
      numerator = *divide_exactly(numerator, common);
      divisor = *divide_exactly(divisor, common);
      scale = scale * common;
      continue;
    }
    if (terms_of(divisor).front().coefficient < 0) {
      numerator = 0 - numerator;
      divisor = 0 - divisor;
      scale = 0 - scale;
      continue;
    }
    if (const Dim part = find_whole_part(numerator, divisor); part != 0) {
      whole = whole + part;
      numerator = numerator - part * divisor;
      continue;
    }
    if (!divisor.is_constant())
      return result;
    // What the divisor shares with all terms but the integer: floor((4*n+3)/6) is floor((2*n+3/2)/3), where
    // 3/2 next to a whole number counts as 1; and mod(4*n+3,6) is 2*mod(2*n+1,3)+1.
    int64_t shared = *divisor.constant();
    const std::vector<DimTerm> terms = terms_of(numerator);
    const int64_t integer = get_integer_term(terms);
    for (const DimTerm& term : terms)
      if (!term.factors.empty())
        shared = std::gcd(shared, term.coefficient);
    if (shared == 1 || numerator.is_constant())
      return result;
    numerator = *divide_exactly(numerator - integer, shared) + integer / shared;
    divisor = *divisor.constant() / shared;
    offset = offset + scale * (integer % shared);
    scale = scale * shared;
  }
  return result;
}

// A floor inside a floor: floor((floor(x/d)+y)/c) is floor((x+d*y)/(d*c)), as y is whole.
std::optional<Dim> merge_nested_floor(const Dim& numerator, int64_t divisor) {
  for (const DimTerm& term : terms_of(numerator)) {
    if (term.coefficient != 1 || term.factors.size() != 1)
      continue;
    const DimAtom& atom = *term.factors[0];
    if (atom.function != DimFunction::FloorDiv || !atom.operands[1].is_constant())
      continue;
    const Dim rest = numerator - DimExpression::sum({term});
    const Dim& inner = atom.operands[1];
    if (const Dim merged = floor_div(atom.operands[0] + inner * rest, inner * divisor); !merged.is_unknown())
      return merged;
  }
  return std::nullopt;
}

// What is the same under mod c: coefficients in [0, c), and x for any mod(x,d) whose coefficient times d is a
// multiple of c.
Dim reduce_modulo(const Dim& numerator, int64_t divisor) {
  Dim result = 0;
  for (const DimTerm& term : terms_of(numerator)) {
    const int64_t coefficient = term.coefficient - divisor * floor_div_integers(term.coefficient, divisor);
    Dim value = DimExpression::sum({DimTerm{1, term.factors}});
    if (term.factors.size() == 1 && term.factors[0]->function == DimFunction::Mod &&
        divide_exactly(coefficient * term.factors[0]->operands[1], divisor))
      value = term.factors[0]->operands[0];
    result = result + coefficient * value;
  }
  return result;
}

// Nothing is known of the quotient, or it would need the negative of the one integer without.
bool is_beyond_division(const Dim& a, const Dim& b) {
  return a.is_unknown() || b.is_unknown() || b == 0 || a == smallest_integer || b == smallest_integer;
}

// Operands that can never decide the result are dropped: max(n+1,n,1) is n+1.
Dim select_extreme(DimFunction function, const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown())
    return Dim();
  std::vector<Dim> operands;
  for (const Dim& dim : {a, b}) {
    if (const DimAtom* atom = get_atom(dim); atom && atom->function == function)
      operands.insert(operands.end(), atom->operands.begin(), atom->operands.end());
    else
      operands.push_back(dim);
  }
  std::sort(operands.begin(), operands.end(), [](const Dim& x, const Dim& y) { return compare(x, y) < 0; });

  const auto covers = [&](const Dim& x, const Dim& y) {
    return function == DimFunction::Max ? is_provably_at_least(x, y) : is_provably_at_least(y, x);
  };
  std::vector<Dim> kept;
  for (const Dim& operand : operands) {
    if (std::any_of(kept.begin(), kept.end(), [&](const Dim& other) { return covers(other, operand); }))
      continue;
    std::erase_if(kept, [&](const Dim& other) { return covers(operand, other); });
    kept.push_back(operand);
  }
  return kept.size() == 1 ? kept.front() : make_atom(function, std::move(kept));
}

}  // namespace

DimBounds find_bounds(const Dim& dim) {
  if (dim.is_unknown())
    return {};
  if (dim.is_constant())
    return {dim.constant(), dim.constant()};
  DimBounds sum{0, 0};
  for (const DimTerm& term : DimExpression::of(dim)->terms) {
    const DimBounds bounds = find_term_bounds(term);
    sum = {add_bounds(sum.lower, bounds.lower), add_bounds(sum.upper, bounds.upper)};
  }
  return sum;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (is_beyond_division(a, b))
    return Dim();
  if (a.is_constant() && b.is_constant())
    return floor_div_integers(a.value_, b.value_);
  const Division division = simplify_division(a, b);
  const auto& [numerator, divisor, whole, scale, offset] = division;
  if (numerator.is_unknown() || divisor.is_unknown())
    return Dim();
  if (numerator == 0 || is_provably_remainder(numerator, divisor))
    return whole;
  if (const auto integer = divisor.constant()) {
    // One sign is enough: floor(-n/4) is -floor((n+3)/4), which is also how ceil(n/4) is written.
    if (terms_of(numerator).front().coefficient < 0)
      return whole - floor_div(*integer - 1 - numerator, divisor);
    if (const auto merged = merge_nested_floor(numerator, *integer))
      return whole + *merged;
  }
  return whole + make_atom(DimFunction::FloorDiv, {numerator, divisor});
}

Dim ceil_div(const Dim& a, const Dim& b) { return 0 - floor_div(0 - a, b); }

Dim mod(const Dim& a, const Dim& b) {
  if (is_beyond_division(a, b))
    return Dim();
  if (a.is_constant() && b.is_constant())
    return a - b * floor_div(a, b);
  const Division division = simplify_division(a, b);
  const auto& [numerator, divisor, whole, scale, offset] = division;
  if (numerator.is_unknown() || divisor.is_unknown())
    return Dim();
  if (numerator == 0 || is_provably_remainder(numerator, divisor))
    return offset + scale * numerator;
  if (const auto integer = divisor.constant())
    if (const Dim reduced = reduce_modulo(numerator, *integer); reduced != numerator)
      return offset + scale * mod(reduced, divisor);
  return offset + scale * make_atom(DimFunction::Mod, {numerator, divisor});
}

Dim max(const Dim& a, const Dim& b) { return select_extreme(DimFunction::Max, a, b); }
Dim min(const Dim& a, const Dim& b) { return select_extreme(DimFunction::Min, a, b); }

Dim apply_function(DimFunction function, const std::vector<Dim>& operands) {
  Dim result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i) {
    const Dim& next = operands[i];
    switch (function) {
      case DimFunction::Symbol:
        CHECK(false, "a symbol has no operands");
        break;
      case DimFunction::FloorDiv:
        result = floor_div(result, next);
        break;
      case DimFunction::Mod:
        result = mod(result, next);
        break;
      case DimFunction::Max:
        result = max(result, next);
        break;
      case DimFunction::Min:
        result = min(result, next);
        break;
    }
  }
  return result;
}

}  // namespace tenon
