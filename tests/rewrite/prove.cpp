#include "rewrite/prove.h"

#include <cmath>

#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "tensor/rounding.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

using Random = std::mt19937_64;

constexpr int kDraws = 12;      // for each dtype and kind of elements
constexpr int kWideDraws = 24;  // most of these overflow

enum class Elements {
  Moderate,
  Special,  // also NaN, infinities and zeros of both signs
  Wide,     // of all magnitudes that the dtype has, a tensor having about one of them
  Roomy,    // the same, but no two of them have a product that overflows
};

struct Range {
  int least, normal, greatest;  // exponents of 2; numbers below the normal ones have fewer digits
};

// What the dtype can hold; those of less than 16 bits can hold some of it.
Range exponents_of(DType dtype) {
  return dtype == DType::F64                           ? Range{-1074, -1022, 1023}
         : dtype == DType::F32 || dtype == DType::BF16 ? Range{-149, -126, 127}
                                                       : Range{-24, -14, 15};
}

// Draws the elements of one tensor.
class Drawing {
 public:
  Drawing(DType dtype, Elements elements, Random& random)
      : dtype_(dtype), elements_(elements), random_(random) {
    if (is_float(dtype) && (elements == Elements::Wide || elements == Elements::Roomy))
      exponent_ = draw_exponent();
  }

  double operator()() {
    if (dtype_ == DType::Bool)
      return static_cast<double>(random_() % 2);
    if (!is_float(dtype_))
      return static_cast<double>(static_cast<int64_t>(random_() % 11) - (is_unsigned(dtype_) ? 0 : 5));
    if (elements_ == Elements::Special && random_() % 4 == 0) {
      const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
      return special[random_() % std::size(special)];
    }
    return exponent_ ? std::ldexp(uniform(-2, 2), *exponent_) : uniform(-4, 4);
  }

 private:
  // The greatest and the least are drawn as often as all others together.
  std::optional<int> draw_exponent() {
    const auto [least, normal, most] = exponents_of(dtype_);
    const int greatest = elements_ == Elements::Wide ? most : most / 2 - 2;
    switch (random_() % 4) {
      case 0:
        return least;
      case 1:
        return greatest;
      case 2:
        return least + static_cast<int>(random_() % static_cast<uint64_t>(greatest - least));
      default:
        return std::nullopt;
    }
  }

  double uniform(double least, double greatest) {
    return std::uniform_real_distribution<double>(least, greatest)(random_);
  }

  DType dtype_;
  Elements elements_;
  Random& random_;
  std::optional<int> exponent_ = {};
};

Data draw_inputs(const Graph& graph, Elements elements, Random& random) {
  Data inputs;
  for (Value input : graph.inputs()) {
    const Extents extents = *input.shape().extents();
    if (input.dtype() == DType::String) {
      std::vector<std::string> words(static_cast<size_t>(element_count(extents)));
      for (std::string& word : words)
        word = std::string(random() % 3, 'a');
      inputs.emplace_back(Tensor::strings(words, extents));
      continue;
    }
    Drawing draw(input.dtype(), elements, random);
    std::vector<double> numbers(static_cast<size_t>(element_count(extents)));
    for (double& number : numbers)
      number = draw();
    inputs.emplace_back(narrow<double>(input.dtype(), extents, numbers));
  }
  return inputs;
}

// The symbols of the inputs become small sizes, 0 among them.
std::unique_ptr<Graph> bind_sizes(const Graph& graph, Random& random) {
  std::map<std::string, Dim> sizes;
  for (Value input : graph.inputs())
    for (const std::string& symbol : symbols_of(input.type()))
      sizes.emplace(symbol, static_cast<int64_t>(random() % 5));
  return graph.bind(sizes);
}

// The greatest magnitude among the floats of a tensor; infinite where one has overflowed or lost digits.
double greatest_of(const Tensor& tensor) {
  if (!is_float(tensor.dtype()))
    return 0;
  const double least = std::ldexp(1, exponents_of(tensor.dtype()).normal);
  double greatest = 0;
  for (double number : widen<double>(tensor)) {
    const double magnitude = std::fabs(number);
    const bool is_normal = magnitude == 0 || (magnitude >= least && std::isfinite(number));
    greatest = is_normal ? std::max(greatest, magnitude) : INFINITY;
  }
  return greatest;
}

// The same for all that the graph computes on the way to its outputs.
double greatest_on_the_way(const Graph& graph, const Data& inputs) {
  const std::unique_ptr<Graph> all = graph.clone();
  const std::vector<Value> outputs = all->outputs();
  std::vector<Value> inner;
  for (Node* node : all->nodes())
    for (Value result : node->results())
      if (std::find(outputs.begin(), outputs.end(), result) == outputs.end() && result.type().is_tensor())
        inner.push_back(result);
  all->set_outputs(inner);
  double greatest = 0;
  for (const Datum& datum : evaluate(*all, inputs))
    greatest = std::max(greatest, greatest_of(datum.tensor()));
  return greatest;
}

// How far what a rule makes may be from what it replaces.
struct Leeway {
  bool has_same_bits;      // but for NaN
  bool may_become_finite;  // what was not, may be anything
  double scale = 8;        // rounding is that of numbers so large, or as large as the greatest there is
};

Leeway leeway_of(Numerics numerics, Elements elements) {
  return {.has_same_bits = numerics == Numerics::BitExact,
          .may_become_finite = numerics == Numerics::AssumesFinite ||
                               (numerics != Numerics::BitExact && elements == Elements::Roomy)};
}

// Where and how two elements differ more than they may; empty when they do not.
std::string mismatch(const Tensor& was, const Tensor& is, const Leeway& leeway) {
  if (was.dtype() != is.dtype() || was.extents() != is.extents())
    return fmt::format("{} became {}", describe(was.dtype(), was.extents()),
                       describe(is.dtype(), is.extents()));
  if (!is_float(was.dtype()))
    return identical(was, is) ? "" : "integers differ";
  const std::vector<double> a = widen<double>(was), b = widen<double>(is);
  double scale = leeway.scale;
  for (double number : a)
    if (std::isfinite(number))
      scale = std::max(scale, std::fabs(number));
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = (std::isnan(a[i]) && std::isnan(b[i])) ||
                      (a[i] == b[i] && (!leeway.has_same_bits || std::signbit(a[i]) == std::signbit(b[i])));
    const bool near =
        !leeway.has_same_bits && std::fabs(a[i] - b[i]) <= 8 * rounding_step(was.dtype()) * scale;
    const bool exempt = leeway.may_become_finite && !std::isfinite(a[i]);
    if (!same && !near && !exempt)
      return fmt::format("element {} was {}, and is {}", i, a[i], b[i]);
  }
  return "";
}

void compare_with_rewritten(const Rule& rule, const Graph& general, DType dtype, Elements elements,
                            Random& random) {
  const std::unique_ptr<Graph> graph = bind_sizes(general, random), rewritten = graph->clone();
  Journal journal(NumericsBudget::Fast);
  apply_rules(*rewritten, {rule}, journal);
  const std::vector<std::string> problems = lint(*rewritten);
  ASSERT_TRUE(problems.empty()) << problems.front();
  const Data inputs = draw_inputs(*graph, elements, random);
  Leeway leeway = leeway_of(rule.numerics, elements);
  if (elements != Elements::Moderate && !leeway.has_same_bits) {
    const double greatest = greatest_on_the_way(*graph, inputs);
    if (greatest == INFINITY)
      return;
    leeway.scale = std::max(leeway.scale, greatest);
  }
  const Data was = evaluate(*graph, inputs), is = evaluate(*rewritten, inputs);
  for (size_t i = 0; i < was.size(); ++i)
    ASSERT_EQ(mismatch(was[i].tensor(), is[i].tensor(), leeway), "") << "T = " << name(dtype) << "\n"
                                                                     << print(*graph) << print(*rewritten);
}

}  // namespace

std::unique_ptr<Graph> parse_example(std::string_view text, DType dtype, std::string* why_not) {
  std::string whole = "graph example";
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_placeholder = text[i] == 'T' && i + 1 < text.size() && text[i + 1] == '[';
    whole += is_placeholder ? std::string(name(dtype)) : std::string(1, text[i]);
  }
  try {
    return parse(whole);
  } catch (const UserError& error) {
    // An example without T is wrong, not for another dtype.
    if (whole.size() == text.size() + std::string_view("graph example").size())
      throw;
    if (why_not != nullptr)
      *why_not = error.what();
    return nullptr;
  }
}

void prove(const Rule& rule) {
  Random random(7);
  int fired = 0;
  std::string why_not;
  for (const DTypeInfo& dtype : all_dtypes()) {
    if (dtype.kind == DTypeKind::Complex)  // no op computes with them
      continue;
    const std::unique_ptr<Graph> example = parse_example(rule.fires, dtype.dtype, &why_not);
    if (example == nullptr)
      continue;
    Journal journal(NumericsBudget::Fast);
    if (apply_rules(*example->clone(), {rule}, journal) == 0)
      continue;
    ++fired;
    for (int draw = 0; draw < kDraws; ++draw) {
      ASSERT_NO_FATAL_FAILURE(
          compare_with_rewritten(rule, *example, dtype.dtype, Elements::Moderate, random));
      if (rule.numerics <= Numerics::Reassociates) {
        ASSERT_NO_FATAL_FAILURE(
            compare_with_rewritten(rule, *example, dtype.dtype, Elements::Special, random));
      }
    }
    const Elements wide = rule.numerics == Numerics::BitExact ? Elements::Wide : Elements::Roomy;
    for (int draw = 0; draw < kWideDraws && rule.numerics <= Numerics::Reassociates; ++draw)
      ASSERT_NO_FATAL_FAILURE(compare_with_rewritten(rule, *example, dtype.dtype, wide, random));
  }
  EXPECT_GT(fired, 0) << "the example does not fire" << (why_not.empty() ? "" : ": " + why_not);
  bool parsed = false;
  for (const DTypeInfo& dtype : all_dtypes()) {
    const std::unique_ptr<Graph> counterexample = parse_example(rule.stays, dtype.dtype, &why_not);
    if (counterexample == nullptr)
      continue;
    parsed = true;
    Journal journal(NumericsBudget::Fast);
    EXPECT_EQ(apply_rules(*counterexample, {rule}, journal), 0)
        << "the counterexample fires for T = " << dtype.name << "\n"
        << print(*counterexample);
  }
  EXPECT_TRUE(parsed) << "no dtype fits the counterexample: " << why_not;
}

}  // namespace tenon
