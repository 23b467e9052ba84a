// dim.cpp — the normal form of dims: sums of products, their order, and the walks over them.
//
// The normal form. Shape inference keeps asking whether two sizes are the same, although they were computed
// in different ways. Rather than search for a proof each time, every Dim is brought into one form when it is
// made; the question is then whether two forms are identical. The form is a polynomial:
//
//     sum of  coefficient * atom * atom * …        2*m*n + n - 1
//
// - An atom is a symbol, or one of floor(a/b), mod(a,b), max(a,…), min(a,…) whose operands are such sums
//   again. Around it, an atom is opaque: floor(n/2) is added and multiplied as a symbol is.
// - Factors are sorted within a term, and terms within the sum: by degree, highest first, then by their
//   factors. Terms with the same factors are merged, and those with coefficient 0 dropped.
// - An atom is made only when no rule in dim_functions.cpp simplifies it, so making it again changes nothing.
//   This is why a printed Dim parses back to itself.
//
// A worked example: two convolutions, kernel 3, stride 2, padding 1, over n elements. Each has
// floor((size+2*1-3)/2)+1 results, so the first gives
//
//     floor((n-1)/2)+1  →  floor((n+1)/2)-1+1  →  floor((n+1)/2)
//
// because a whole multiple of 2 leaves the floor, so that what stays inside is 0 or 1. The second:
//
//     floor((floor((n+1)/2)-1)/2)+1  →  floor((floor((n+1)/2)+1)/2)  →  floor((n+3)/4)
//
// because 1 is 2/2, and a floor of a floor is one floor. A pooling with kernel 4 and stride 4 over n+3
// elements gives floor((n+3-4)/4)+1, which is floor((n+3)/4) too: the two may be added without asking anyone.
//
// Identical forms are always equal sizes. The converse has exceptions (nobody sees that
// floor(n/2)+floor((n+1)/2) is n): equality of such expressions is undecidable in general, and the rules
// cover what models contain.
#include "ir/dim.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "ir/dim_expression.h"

namespace tenon {
namespace {

std::strong_ordering compare_factors(const DimTerm& a, const DimTerm& b) {
  if (a.factors.size() != b.factors.size())
    return b.factors.size() <=> a.factors.size();
  return std::lexicographical_compare_three_way(
      a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
      [](const DimFactor& x, const DimFactor& y) { return compare(x, y); });
}

std::strong_ordering compare_terms(const DimTerm& a, const DimTerm& b) {
  const std::strong_ordering order = compare_factors(a, b);
  return order != 0 ? order : a.coefficient <=> b.coefficient;
}

DimFactor make_factor(DimFunction function, std::string name, std::vector<Dim> operands) {
  uint64_t hash = hash_combine(static_cast<uint64_t>(function), hash_string(name));
  size_t size = 1;
  for (const Dim& operand : operands) {
    hash = hash_combine(hash, operand.hash());
    size += operand.is_constant() ? 1 : DimExpression::of(operand)->size;
  }
  return std::make_shared<const DimAtom>(DimAtom{function, std::move(name), std::move(operands), hash, size});
}

// The dim computed anew, with `replace(name)` in place of each symbol.
template <class Replace>
Dim rebuild(const Dim& dim, const Replace& replace) {
  const DimExpression* expression = DimExpression::of(dim);
  if (!expression)
    return dim;
  Dim sum = 0;
  for (const DimTerm& term : expression->terms) {
    Dim product = term.coefficient;
    for (const DimFactor& factor : term.factors) {
      if (factor->function == DimFunction::Symbol) {
        product = product * replace(factor->name);
        continue;
      }
      std::vector<Dim> operands;
      for (const Dim& operand : factor->operands)
        operands.push_back(rebuild(operand, replace));
      product = product * apply_function(factor->function, operands);
    }
    sum = sum + product;
  }
  return sum;
}

void collect_symbols(const Dim& dim, std::set<std::string>& names) {
  const DimExpression* expression = DimExpression::of(dim);
  if (!expression)
    return;
  for (const DimTerm& term : expression->terms)
    for (const DimFactor& factor : term.factors) {
      if (factor->function == DimFunction::Symbol)
        names.insert(factor->name);
      for (const Dim& operand : factor->operands)
        collect_symbols(operand, names);
    }
}

std::optional<DimTerm> divide_term(const DimTerm& a, const DimTerm& b) {
  const bool overflows = a.coefficient == smallest_integer && b.coefficient == -1;
  if (overflows || a.coefficient % b.coefficient != 0)
    return std::nullopt;
  auto factors = remove_factors(a, b);
  if (!factors)
    return std::nullopt;
  return DimTerm{a.coefficient / b.coefficient, *std::move(factors)};
}

// --- bounds ---

std::optional<int64_t> least_of(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(a, b) : a ? a : b;
}

constexpr int kMostTries = 64;  // of the operands of min and max, which may be nested
std::optional<int64_t> find_upper(const Dim& dim, int& tries);

// By so many times the sum that no floor is left: d*floor(x/d) lies between x-d+1 and x.
std::optional<int64_t> find_upper_without_floors(const Dim& dim, int& tries) {
  constexpr int64_t kMostTimes = 1 << 20;
  const auto divisor_of = [](const DimTerm& term) {
    const bool is_floor = term.factors.size() == 1 && term.factors[0]->function == DimFunction::FloorDiv;
    return is_floor ? std::max<int64_t>(term.factors[0]->operands[1].constant().value_or(1), 1) : 1;
  };
  int64_t times = 1;
  for (const DimTerm& term : terms_of(dim))
    if (divisor_of(term) > kMostTimes || (times = std::lcm(times, divisor_of(term))) > kMostTimes)
      return std::nullopt;
  if (times == 1)
    return std::nullopt;
  Dim most = 0;
  for (const DimTerm& term : terms_of(dim)) {
    const int64_t divisor = divisor_of(term);
    const Dim value = divisor == 1 ? DimExpression::sum({DimTerm{1, term.factors}})
                                   : term.factors[0]->operands[0] - (term.coefficient > 0 ? 0 : divisor - 1);
    most = most + value * term.coefficient * (times / divisor);
  }
  const std::optional<int64_t> upper = find_upper(most, tries);
  return upper ? std::optional(floor_div_integers(*upper, times)) : std::nullopt;
}

// By any operand of a min, which is not above it, or of a max that is taken off.
std::optional<int64_t> find_upper_by_operands(const Dim& dim, int& tries) {
  for (const DimTerm& term : terms_of(dim)) {
    const DimFunction chosen = term.coefficient > 0 ? DimFunction::Min : DimFunction::Max;
    if (term.factors.size() != 1 || term.factors[0]->function != chosen)
      continue;
    const Dim rest = dim - DimExpression::sum({term});
    std::optional<int64_t> least;
    for (const Dim& operand : term.factors[0]->operands)
      if (--tries > 0)
        least = least_of(least, find_upper(rest + operand * term.coefficient, tries));
    return least;  // the other terms are left to what this one became
  }
  return std::nullopt;
}

std::optional<int64_t> find_upper(const Dim& dim, int& tries) {
  if (dim.is_unknown() || dim.is_constant())
    return dim.constant();
  return least_of(find_bounds(dim).upper,
                  least_of(find_upper_without_floors(dim, tries), find_upper_by_operands(dim, tries)));
}

}  // namespace

std::vector<DimTerm> terms_of(const Dim& dim) {
  CHECK(!dim.is_unknown(), "an unknown dim has no terms");
  if (const DimExpression* expression = DimExpression::of(dim))
    return expression->terms;
  if (*dim.constant() == 0)
    return {};
  return {DimTerm{*dim.constant(), {}}};
}

const DimAtom* get_atom(const Dim& dim) {
  const DimExpression* expression = DimExpression::of(dim);
  if (!expression || expression->terms.size() != 1)
    return nullptr;
  const DimTerm& term = expression->terms[0];
  return term.coefficient == 1 && term.factors.size() == 1 ? term.factors[0].get() : nullptr;
}

std::optional<std::vector<DimFactor>> remove_factors(const DimTerm& a, const DimTerm& b) {
  std::vector<DimFactor> rest;
  std::set_difference(a.factors.begin(), a.factors.end(), b.factors.begin(), b.factors.end(),
                      std::back_inserter(rest), precedes);
  if (rest.size() + b.factors.size() != a.factors.size())
    return std::nullopt;
  return rest;
}

Dim DimExpression::sum(std::vector<DimTerm> terms) {
  std::sort(terms.begin(), terms.end(),
            [](const DimTerm& a, const DimTerm& b) { return compare_factors(a, b) < 0; });
  std::vector<DimTerm> merged;
  for (DimTerm& term : terms) {
    if (merged.empty() || compare_factors(merged.back(), term) != 0) {
      if (!merged.empty() && merged.back().coefficient == 0)
        merged.pop_back();
      merged.push_back(std::move(term));
      continue;
    }
    const auto coefficient = add_integers(merged.back().coefficient, term.coefficient);
    if (!coefficient)
      return Dim();
    merged.back().coefficient = *coefficient;
  }
  if (!merged.empty() && merged.back().coefficient == 0)
    merged.pop_back();
  if (merged.empty())
    return 0;
  if (merged.front().factors.empty())
    return merged.front().coefficient;

  uint64_t hash = merged.size();
  size_t size = 0;
  for (const DimTerm& term : merged) {
    if (term.coefficient == smallest_integer)
      return Dim();
    hash = hash_combine(hash, static_cast<uint64_t>(term.coefficient));
    size += 1;
    for (const DimFactor& factor : term.factors) {
      hash = hash_combine(hash, factor->hash);
      size += factor->size;
    }
  }
  if (size > maximum_dim_size)
    return Dim();
  Dim result = 0;
  result.expression_ = std::make_shared<const DimExpression>(DimExpression{std::move(merged), hash, size});
  return result;
}

Dim make_atom(DimFunction function, std::vector<Dim> operands) {
  return DimExpression::sum({DimTerm{1, {make_factor(function, "", std::move(operands))}}});
}

Dim Dim::symbol(std::string_view name) {
  CHECK(!name.empty(), "a symbol needs a name");
  return DimExpression::sum({DimTerm{1, {make_factor(DimFunction::Symbol, std::string(name), {})}}});
}

bool Dim::is_symbol() const {
  const DimAtom* atom = get_atom(*this);
  return atom && atom->function == DimFunction::Symbol;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown())
    return Dim();
  if (a.is_constant() && b.is_constant()) {
    const auto sum = add_integers(a.value_, b.value_);
    return sum ? Dim(*sum) : Dim();
  }
  std::vector<DimTerm> terms = terms_of(a);
  for (DimTerm& term : terms_of(b))
    terms.push_back(std::move(term));
  return DimExpression::sum(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    int64_t difference;
    return __builtin_sub_overflow(a.value_, b.value_, &difference) ? Dim() : Dim(difference);
  }
  return a + b * -1;
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a == 0 || b == 0)
    return 0;
  if (a.is_unknown() || b.is_unknown())
    return Dim();
  if (a.is_constant() && b.is_constant()) {
    const auto product = multiply_integers(a.value_, b.value_);
    return product ? Dim(*product) : Dim();
  }
  std::vector<DimTerm> products;
  const std::vector<DimTerm> b_terms = terms_of(b);
  for (const DimTerm& x : terms_of(a))
    for (const DimTerm& y : b_terms) {
      const auto coefficient = multiply_integers(x.coefficient, y.coefficient);
      if (!coefficient)
        return Dim();
      DimTerm product{*coefficient, {}};
      std::merge(x.factors.begin(), x.factors.end(), y.factors.begin(), y.factors.end(),
                 std::back_inserter(product.factors), precedes);
      products.push_back(std::move(product));
    }
  return DimExpression::sum(std::move(products));
}

// Long division of polynomials. It finds the quotient whenever there is one, because the order of the terms
// is kept by multiplication: the highest term of a product is the product of the highest terms.
std::optional<Dim> divide_exactly(const Dim& a, const Dim& b) {
  if (a.is_unknown() || b.is_unknown() || b == 0)
    return std::nullopt;
  const DimTerm divisor = terms_of(b).front();
  Dim quotient = 0;
  Dim remainder = a;
  while (remainder != 0) {
    const auto term = divide_term(terms_of(remainder).front(), divisor);
    if (!term)
      return std::nullopt;
    const Dim part = DimExpression::sum({*term});
    quotient = quotient + part;
    remainder = remainder - part * b;
    if (quotient.is_unknown() || remainder.is_unknown())
      return std::nullopt;
  }
  return quotient;
}

std::strong_ordering compare(const DimFactor& a, const DimFactor& b) {
  if (a == b)
    return std::strong_ordering::equal;
  if (a->function != b->function)
    return a->function <=> b->function;
  if (const int order = a->name.compare(b->name); order != 0)
    return order <=> 0;
  return std::lexicographical_compare_three_way(a->operands.begin(), a->operands.end(), b->operands.begin(),
                                                b->operands.end(),
                                                [](const Dim& x, const Dim& y) { return compare(x, y); });
}

std::strong_ordering compare(const Dim& a, const Dim& b) {
  const DimExpression* x = DimExpression::of(a);
  const DimExpression* y = DimExpression::of(b);
  if (x && y)
    return std::lexicographical_compare_three_way(x->terms.begin(), x->terms.end(), y->terms.begin(),
                                                  y->terms.end(), compare_terms);
  if (x || y)
    return x ? std::strong_ordering::less : std::strong_ordering::greater;
  if (a.is_unknown() || b.is_unknown())
    return a.is_unknown() <=> b.is_unknown();
  return *a.constant() <=> *b.constant();
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.expression_ && b.expression_)
    return a.expression_ == b.expression_ ||
           (a.expression_->hash == b.expression_->hash && compare(a, b) == 0);
  return !a.expression_ && !b.expression_ && a.unknown_ == b.unknown_ && a.value_ == b.value_;
}

uint64_t Dim::hash() const {
  return expression_ ? expression_->hash : hash_combine(unknown_ ? 1 : 0, static_cast<uint64_t>(value_));
}

Dim Dim::substitute(const std::map<std::string, Dim>& replacements) const {
  return rebuild(*this, [&](const std::string& name) {
    const auto found = replacements.find(name);
    return found == replacements.end() ? symbol(name) : found->second;
  });
}

std::optional<int64_t> Dim::evaluate(const std::map<std::string, int64_t>& bindings) const {
  const Dim value = rebuild(*this, [&](const std::string& name) {
    const auto found = bindings.find(name);
    return found == bindings.end() ? Dim() : Dim(found->second);
  });
  return value.constant();
}

std::vector<std::string> Dim::symbols() const {
  std::set<std::string> names;
  collect_symbols(*this, names);
  return {names.begin(), names.end()};
}

bool Dim::mentions(std::string_view symbol) const {
  const DimExpression* expression = DimExpression::of(*this);
  if (!expression)
    return false;
  return std::ranges::any_of(expression->terms, [&](const DimTerm& term) {
    return std::ranges::any_of(term.factors, [&](const DimFactor& factor) {
      return (factor->function == DimFunction::Symbol && factor->name == symbol) ||
             std::ranges::any_of(factor->operands,
                                 [&](const Dim& operand) { return operand.mentions(symbol); });
    });
  });
}

std::optional<int64_t> Dim::lower_bound() const { return find_bounds(*this).lower; }

std::optional<int64_t> Dim::upper_bound() const {
  int tries = kMostTries;
  return find_upper(*this, tries);
}

}  // namespace tenon
