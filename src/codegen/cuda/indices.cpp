#include "codegen/cuda/indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "ir/dim_expression.h"

namespace tenon::codegen::cuda {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();

int64_t add(int64_t a, int64_t b) {
  if (a == kLeast || b == kLeast)
    return kLeast;
  return a == kMost || b == kMost ? kMost : add_integers(a, b).value_or(a < 0 ? kLeast : kMost);
}
int64_t multiply(int64_t a, int64_t b) {
  return multiply_integers(a, b).value_or((a < 0) == (b < 0) ? kMost : kLeast);
}
Range multiply(const Range& a, const Range& b) {
  const int64_t products[] = {multiply(a.low, b.low), multiply(a.low, b.high), multiply(a.high, b.low),
                              multiply(a.high, b.high)};
  return {*std::ranges::min_element(products), *std::ranges::max_element(products)};
}

}  // namespace

const IndexText::Symbol& IndexText::symbol(const std::string& name) const {
  const auto it = symbols_.find(name);
  CHECK(it != symbols_.end(), "the size or loop variable {} is unbound", name);
  return it->second;
}

Range IndexText::range_of(const Dim& dim) const {
  CHECK(!dim.is_unknown(), "an index of unknown value");
  Range sum{0, 0};
  for (const DimTerm& term : terms_of(dim)) {
    const Range own = range_of(term);
    sum = {add(sum.low, own.low), add(sum.high, own.high)};
  }
  return sum;
}

Range IndexText::range_of(const DimTerm& term) const {
  Range product{term.coefficient, term.coefficient};
  for (const DimFactor& factor : term.factors)
    product = multiply(product, range_of(*factor));
  return product;
}

Range IndexText::range_of(const DimAtom& atom) const {
  if (atom.function == DimFunction::Symbol)
    return symbol(atom.name).range;
  Range range = range_of(atom.operands[0]);
  const Range second = range_of(atom.operands[1]);
  switch (atom.function) {
    case DimFunction::FloorDiv:
      if (second.low <= 0)
        return {kLeast, kMost};
      return {std::min<int64_t>(range.low, 0),
              range.high == kMost ? kMost : std::max<int64_t>(range.high, 0) / second.low};
    case DimFunction::Mod:
      if (second.low < 0)
        return {kLeast, kMost};
      return {0, std::max<int64_t>(add(second.high, -1), 0)};
    default:
      for (size_t i = 1; i < atom.operands.size(); ++i) {
        const Range other = range_of(atom.operands[i]);
        range = atom.function == DimFunction::Max
                    ? Range{std::max(range.low, other.low), std::max(range.high, other.high)}
                    : Range{std::min(range.low, other.low), std::min(range.high, other.high)};
      }
      return range;
  }
}

Expression IndexText::text(const Dim& dim) {
  CHECK(!dim.is_unknown(), "an index of unknown value");
  if (const std::optional<int64_t> value = dim.constant())
    return {Range{*value, *value}.fits_int() ? fmt::format("{}", *value) : fmt::format("{}LL", *value),
            *value < 0 ? Binding::Unary : Binding::Primary};
  const bool is_wide = !range_of(dim).fits_int();
  std::vector<DimTerm> terms = terms_of(dim);
  // What has 64 bits comes first, so that the sum has them from the start; what is subtracted, late, and then
  // the number.
  const auto rank = [&](const DimTerm& term) {
    return std::tuple(term.factors.empty(), term.coefficient < 0, !begins_wide(term),
                      -std::abs(term.coefficient));
  };
  std::ranges::stable_sort(terms, {}, rank);
  Expression sum;
  for (DimTerm& term : terms) {
    const bool is_first = &term == &terms.front(), subtracts = !is_first && term.coefficient < 0;
    if (subtracts)
      term.coefficient = -term.coefficient;
    Expression product = text(term, is_first && is_wide);
    if (is_first)
      sum = std::move(product);
    else
      sum = {fmt::format("{} {} {}", sum.text, subtracts ? "-" : "+", product.at(Binding::Product)),
             Binding::Sum};
  }
  return sum;
}

bool IndexText::begins_wide(const DimTerm& term) const {
  return !term.factors.empty() && !range_of(*term.factors.front()).fits_int();
}

Expression IndexText::text(const DimTerm& term, bool is_wide) {
  is_wide = is_wide || !range_of(term).fits_int();
  const bool converts = is_wide && !begins_wide(term);  // the first, by which the others are
  std::vector<std::string> factors;
  if (term.coefficient != 1 || term.factors.empty())
    factors.push_back(fmt::format("{}{}", term.coefficient, converts ? "LL" : ""));
  for (const DimFactor& factor : term.factors) {
    const Expression own = text(*factor);
    if (factors.empty() && converts)
      factors.push_back("(long long)" + own.at(Binding::Unary));
    else if (term.coefficient == 1 && term.factors.size() == 1)
      return own;
    else
      factors.push_back(own.at(factors.empty() ? Binding::Product : Binding::Unary));
  }
  return {fmt::format("{}", fmt::join(factors, " * ")),
          factors.size() == 1 ? Binding::Unary : Binding::Product};
}

std::string IndexText::converted(const Dim& dim, const Range& range) {
  const Expression own = text(dim);
  if (range.fits_int() || !range_of(dim).fits_int())
    return own.text;
  return dim.is_constant() ? own.text + "LL" : "(long long)" + own.at(Binding::Unary);
}

Expression IndexText::text(const DimAtom& atom) {
  if (atom.function == DimFunction::Symbol)
    return symbol(atom.name).text;
  Range all = range_of(atom.operands[0]);
  for (const Dim& operand : atom.operands) {
    const Range own = range_of(operand);
    all = {std::min(all.low, own.low), std::max(all.high, own.high)};
  }
  const Expression own = text(atom, all);
  return range_of(atom).fits_int() && !all.fits_int()
             ? Expression{"(int)" + own.at(Binding::Unary), Binding::Unary}
             : own;
}

Expression IndexText::text(const DimAtom& atom, const Range& all) {
  if (atom.function == DimFunction::FloorDiv || atom.function == DimFunction::Mod) {
    const bool divides = atom.function == DimFunction::FloorDiv;
    if (all.low >= 0)
      return {fmt::format("{} {} {}", text(atom.operands[0]).at(Binding::Product), divides ? "/" : "%",
                          text(atom.operands[1]).at(Binding::Unary)),
              Binding::Product};
    const std::string_view function = preamble_.use(divides ? "floor_div" : "floor_mod");
    return {fmt::format("{}({}, {})", function, converted(atom.operands[0], all),
                        converted(atom.operands[1], all))};
  }
  const std::string_view function = atom.function == DimFunction::Max ? "max" : "min";
  std::string chosen = converted(atom.operands[0], all);
  for (size_t i = 1; i < atom.operands.size(); ++i)
    chosen = fmt::format("{}({}, {})", function, chosen, converted(atom.operands[i], all));
  return {chosen};
}

}  // namespace tenon::codegen::cuda
