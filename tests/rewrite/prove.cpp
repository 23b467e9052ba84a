#include "rewrite/prove.h"

#include <cmath>

#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

using Random = std::mt19937_64;

constexpr int kDraws = 12;  // for each dtype and kind of elements

enum class Elements { Finite, Special };

double draw(DType dtype, Elements elements, Random& random) {
  if (dtype == DType::Bool)
    return static_cast<double>(random() % 2);
  if (!is_float(dtype))
    return static_cast<double>(static_cast<int64_t>(random() % 11) - (is_unsigned(dtype) ? 0 : 5));
  if (elements == Elements::Special && random() % 4 == 0) {
    const double special[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    return special[random() % std::size(special)];
  }
  return std::uniform_real_distribution<double>(-4, 4)(random);
}

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
    std::vector<double> numbers(static_cast<size_t>(element_count(extents)));
    for (double& number : numbers)
      number = draw(input.dtype(), elements, random);
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

bool is_finite(const Tensor& tensor) {
  if (!is_float(tensor.dtype()))
    return true;
  const std::vector<double> numbers = widen<double>(tensor);
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

// Whether everything the graph computes on the way to its outputs is finite.
bool has_finite_intermediates(const Graph& graph, const Data& inputs) {
  const std::unique_ptr<Graph> all = graph.clone();
  const std::vector<Value> outputs = all->outputs();
  std::vector<Value> inner;
  for (Node* node : all->nodes())
    for (Value result : node->results())
      if (std::find(outputs.begin(), outputs.end(), result) == outputs.end() && result.type().is_tensor())
        inner.push_back(result);
  all->set_outputs(inner);
  for (const Datum& datum : evaluate(*all, inputs))
    if (!is_finite(datum.tensor()))
      return false;
  return true;
}

double unit_of(DType dtype) {
  switch (info(dtype).bits) {
    case 64:
      return 0x1p-52;
    case 32:
      return 0x1p-23;
    case 16:
      return dtype == DType::BF16 ? 0x1p-7 : 0x1p-10;
    default:
      return 0x1p-2;
  }
}

// Where and how two elements differ more than the class allows; empty when they do not.
std::string mismatch(const Tensor& was, const Tensor& is, Numerics numerics) {
  if (was.dtype() != is.dtype() || was.extents() != is.extents())
    return fmt::format("{} became {}", describe(was.dtype(), was.extents()),
                       describe(is.dtype(), is.extents()));
  if (!is_float(was.dtype()))
    return identical(was, is) ? "" : "integers differ";
  const std::vector<double> a = widen<double>(was), b = widen<double>(is);
  double scale = 8;
  for (double number : a)
    if (std::isfinite(number))
      scale = std::max(scale, std::fabs(number));
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same =
        (std::isnan(a[i]) && std::isnan(b[i])) ||
        (a[i] == b[i] && (numerics != Numerics::BitExact || std::signbit(a[i]) == std::signbit(b[i])));
    const bool near =
        numerics != Numerics::BitExact && std::fabs(a[i] - b[i]) <= 8 * unit_of(was.dtype()) * scale;
    const bool exempt = numerics == Numerics::AssumesFinite && !std::isfinite(a[i]);
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
  if (elements == Elements::Special && rule.numerics == Numerics::Reassociates &&
      !has_finite_intermediates(*graph, inputs))
    return;
  const Data was = evaluate(*graph, inputs), is = evaluate(*rewritten, inputs);
  for (size_t i = 0; i < was.size(); ++i)
    ASSERT_EQ(mismatch(was[i].tensor(), is[i].tensor(), rule.numerics), "")
        << "T = " << name(dtype) << "\n"
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
      ASSERT_NO_FATAL_FAILURE(compare_with_rewritten(rule, *example, dtype.dtype, Elements::Finite, random));
      if (rule.numerics <= Numerics::Reassociates) {
        ASSERT_NO_FATAL_FAILURE(
            compare_with_rewritten(rule, *example, dtype.dtype, Elements::Special, random));
      }
    }
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
