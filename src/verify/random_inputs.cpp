#include "verify/random_inputs.h"

#include <algorithm>
#include <cmath>

#include "rewrite/match.h"
#include "tensor/rounding.h"
#include "tensor/wide.h"
#include "verify/compare.h"
#include "verify/index_bounds.h"
#include "verify/sample_inputs.h"
#include "verify/tolerances.h"

namespace tenon {
namespace {

constexpr int64_t kSizes[] = {3, 8, 32, 64};  // that symbols are tried with
constexpr int64_t kSmallIntegers = 10;        // integers that nothing bounds are below this

// Tried one after another until the outputs tell something.
constexpr Spread kSpreads[] = {{1, false}, {1, true}, {30, false}, {30, true}};

// Whether comparing with any of these proves something.
bool tells(const Data& outputs) {
  return std::none_of(outputs.begin(), outputs.end(), [](const Datum& output) {
    return std::holds_alternative<Tensor>(output) &&
           compare(output.tensor(), output.tensor(), 0).proves_nothing;
  });
}

// Whether the node makes of 1 and 0 what is attended to and what is not.
bool reads_mask(const Node& user, Value value) {
  return (user.is("cast") && user.result().dtype() == DType::Bool) ||
         (user.is("sub") && user.in("b") == value && uniform_number(user.in("a")) == 1);
}

// How many different integers a value may be: fewer than the rows of any table that it is looked up in, and
// two for a mask.
int64_t bound_of(Value input) {
  std::optional<int64_t> bound;
  const auto lower_to = [&](int64_t most) { bound = bound ? std::min(*bound, most) : most; };
  for_each_reader(input, [&](const Node& user, Value value) {
    if (names_places(user, value))
      lower_to(places_to_name(user).value_or(kSmallIntegers));
    else if (reads_mask(user, value))
      lower_to(2);
  });
  return std::max<int64_t>(bound.value_or(kSmallIntegers), 1);
}

Tensor draw(Value input, RandomGenerator& random, const Spread& spread) {
  const std::optional<Extents> extents =
      input.type().is_tensor() && input.shape().ranked() ? input.shape().extents() : std::nullopt;
  if (!extents || input.dtype() == DType::String || kind(input.dtype()) == DTypeKind::Complex)
    throw user_error("input \"{}\" of type {} cannot be drawn at random", input.name(), input.type());
  const auto count = static_cast<size_t>(element_count(*extents));
  if (is_float(input.dtype())) {
    std::normal_distribution<double> normal;
    std::vector<double> numbers(count);
    for (double& number : numbers) {
      const double drawn = spread.factor * normal(random);
      number = spread.is_positive ? std::fabs(drawn) : drawn;
    }
    return narrow<double>(input.dtype(), *extents, numbers);
  }
  const int64_t bound = input.dtype() == DType::Bool ? 2 : bound_of(input);
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers)
    number = static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  return narrow<int64_t>(input.dtype(), *extents, numbers);
}

Datum nudged(const Datum& datum, RandomGenerator& random) {
  if (!std::holds_alternative<Tensor>(datum) || !is_float(datum.tensor().dtype()))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<double> numbers = widen<double>(tensor);
  const double step = rounding_step(tensor.dtype());
  for (double& number : numbers)
    number *= random() % 2 == 0 ? 1 + step : 1 - step;
  return narrow<double>(tensor.dtype(), tensor.extents(), numbers);
}

}  // namespace

std::span<const Spread> spreads() { return kSpreads; }

bool explained_by_rounding(const Graph& graph, const Sample& sample, const Data& actual, double tolerance) {
  constexpr double kFew = 8, kAnything = std::numeric_limits<double>::infinity();
  RandomGenerator random(0);
  Data inputs;
  for (const Datum& input : sample.inputs)
    inputs.push_back(nudged(input, random));
  const Data outputs = evaluate(graph, inputs);
  const std::vector<double> tolerances = tolerances_of(graph, tolerance);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!std::holds_alternative<Tensor>(sample.outputs[i]))
      return false;
    const Tensor& expected = sample.outputs[i].tensor();
    if (compare(actual[i].tensor(), expected, tolerances[i]).agree)
      continue;
    const Comparison off = compare(actual[i].tensor(), expected, kAnything),
                     moved = compare(outputs[i].tensor(), expected, kAnything);
    if (!off.agree || !moved.agree || off.worst_error > kFew * moved.worst_error)
      return false;
  }
  return true;
}

Data random_inputs(const Graph& graph, RandomGenerator& random, const Spread& spread) {
  Data inputs;
  for (Value input : graph.inputs())
    inputs.emplace_back(draw(input, random, spread));
  return inputs;
}

Sample telling_sample(const Graph& graph, RandomGenerator& random, const EvaluateOptions& options) {
  std::optional<Sample> first;
  for (const Spread& spread : kSpreads) {
    Sample sample{random_inputs(graph, random, spread), {}};
    sample.outputs = evaluate(graph, sample.inputs, options);
    if (tells(sample.outputs))
      return sample;
    if (!first)
      first = std::move(sample);
  }
  return std::move(*first);
}

std::unique_ptr<Graph> with_small_sizes(const Graph& graph, const Listener& listener) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    symbols.merge(symbols_of(input.type()));
  if (symbols.empty())
    return graph.clone();
  std::string last_error;
  for (int64_t size : kSizes) {
    std::map<std::string, Dim> sizes;
    for (const std::string& symbol : symbols)
      sizes.emplace(symbol, size);
    try {
      std::unique_ptr<Graph> sized = graph.bind(sizes);
      RandomGenerator random(0);
      evaluate(*sized, random_inputs(*sized, random),
               heard_by(listener, fmt::format("trying sizes of {}, running node", size), *sized));
      return sized;
    } catch (const UserError& error) {
      last_error = error.what();
    }
  }
  throw user_error("no small sizes fit: {}\n  hint: give the sizes with {}, or inputs with --inputs",
                   last_error, dims_to_bind(graph));
}

std::unique_ptr<Graph> with_sizes_of(const Graph& graph, const Data& inputs) {
  std::map<std::string, Dim> sizes;
  for (Value input : graph.inputs()) {
    const Datum& datum = inputs[static_cast<size_t>(input.index())];
    if (!input.type().is_tensor() || !input.shape().ranked() || !std::holds_alternative<Tensor>(datum) ||
        datum.tensor().rank() != input.rank())
      continue;
    for (int64_t i = 0; i < input.rank(); ++i)
      if (input.dim(i).is_symbol())
        sizes.emplace(input.dim(i).symbols().front(), datum.tensor().extent(i));
  }
  return graph.bind(sizes);
}

}  // namespace tenon
