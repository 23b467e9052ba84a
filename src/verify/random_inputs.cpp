#include "verify/random_inputs.h"

#include <algorithm>
#include <cmath>

#include "rewrite/match.h"
#include "tensor/wide.h"
#include "verify/compare.h"
#include "verify/cut_out.h"
#include "verify/index_bounds.h"

namespace tenon {
namespace {

constexpr int64_t kSmallIntegers = 10;  // integers that nothing bounds are below this

// Tried one after another until the outputs tell something.
constexpr Spread kSpreads[] = {
    {}, {.is_positive = true}, {.factor = 30}, {.factor = 30, .is_positive = true}};

constexpr int64_t kMostBlindDraws = 4;
// A score is masked if it is this low: what models mask with is no higher.
constexpr double kMaskedScore = -9999;

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

bool is_mask(Value input) {
  bool is_read_so = false;
  for_each_reader(input, [&](const Node& user, Value value) {
    is_read_so = is_read_so || (is_integer(input.dtype()) && reads_mask(user, value));
  });
  return is_read_so;
}

// A row of a mask that hides everything makes nothing but NaN, or what rounding leaves of masked scores.
void show_first_of_each_row(std::vector<int64_t>& mask, const Extents& extents) {
  const auto row = static_cast<size_t>(extents.empty() ? 1 : extents.back());
  for (size_t first = 0; first < mask.size(); first += row)
    mask[first] = 1;
}

Tensor draw(Value input, std::mt19937_64& random, const Spread& spread) {
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
  const int64_t bound = input.dtype() == DType::Bool ? 2 : std::min(bound_of(input), spread.most_integers);
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers)
    number = static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  if (is_mask(input) || (spread.shows_first && input.dtype() == DType::Bool))
    show_first_of_each_row(numbers, *extents);
  return narrow<int64_t>(input.dtype(), *extents, numbers);
}

bool has_masked_row(const Tensor& scores, int64_t axis) {
  const Extents& extents = scores.extents();
  const auto along = static_cast<size_t>(axis < 0 ? axis + scores.rank() : axis);
  size_t inner = 1;
  for (size_t i = along + 1; i < extents.size(); ++i)
    inner *= static_cast<size_t>(extents[i]);
  const std::vector<double> numbers = widen<double>(scores);
  std::vector<bool> is_seen(extents[along] == 0 ? 0 : numbers.size() / static_cast<size_t>(extents[along]));
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] > kMaskedScore) {
      const size_t row = i / inner / static_cast<size_t>(extents[along]);
      is_seen[row * inner + i % inner] = true;
    }
  return std::ranges::find(is_seen, false) != is_seen.end();
}

// Whether all is masked for some query.
bool is_blind(const Graph& graph, const RecordedValues& recorded) {
  return std::ranges::any_of(graph.nodes(), [&](const Node* node) {
    return node->is("softmax") &&
           has_masked_row(recorded.at(node->in("x").data()).tensor(), node->attr("axis").as<int64_t>());
  });
}

bool takes_masks(const Graph& graph) {
  const auto is_softmax = [](const Node* node) { return node->is("softmax"); };
  return std::ranges::any_of(graph.nodes(), is_softmax) &&
         std::ranges::any_of(graph.inputs(), [](Value input) {
           return input.type().is_tensor() && (input.dtype() == DType::Bool || is_mask(input));
         });
}

// A draw, and whether it is blind.
std::pair<Sample, bool> draw_sample(const Graph& graph, std::mt19937_64& random, const Spread& spread,
                                    const EvaluateOptions& options) {
  return run_on_random_inputs(graph, random, spread, [&](const Data& inputs) {
    if (!takes_masks(graph))
      return std::pair(Sample{inputs, evaluate(graph, inputs, options)}, false);
    const RecordedValues recorded = record_values(graph, inputs, options);
    Sample sample{inputs, {}};
    for (Value output : graph.outputs())
      sample.outputs.push_back(recorded.at(output.data()));
    return std::pair(std::move(sample), is_blind(graph, recorded));
  });
}

Sample seeing_sample_of(const Graph& graph, std::mt19937_64& random, Spread spread,
                        const EvaluateOptions& options) {
  std::optional<Sample> first;
  for (int64_t drawn = 0; drawn < kMostBlindDraws; ++drawn) {
    spread.shows_first = drawn > 0;
    auto [sample, is_blind] = draw_sample(graph, random, spread, options);
    if (!is_blind)
      return std::move(sample);
    if (!first)
      first = std::move(sample);
  }
  return std::move(*first);
}

}  // namespace

std::span<const Spread> spreads() { return kSpreads; }

bool takes_integers(const Graph& graph) {
  return std::ranges::any_of(
      graph.inputs(), [](Value input) { return input.type().is_tensor() && is_integer(input.dtype()); });
}

Data random_inputs(const Graph& graph, std::mt19937_64& random, const Spread& spread) {
  Data inputs;
  for (Value input : graph.inputs())
    inputs.emplace_back(draw(input, random, spread));
  return inputs;
}

Sample seeing_sample(const Graph& graph, std::mt19937_64& random, const EvaluateOptions& options) {
  return seeing_sample_of(graph, random, {}, options);
}

Sample telling_sample(const Graph& graph, std::mt19937_64& random, const EvaluateOptions& options) {
  std::optional<Sample> first;
  for (const Spread& spread : kSpreads) {
    Sample sample = seeing_sample_of(graph, random, spread, options);
    if (tells(sample.outputs))
      return sample;
    if (!first)
      first = std::move(sample);
  }
  return std::move(*first);
}

}  // namespace tenon
