#include "verify/conditioning.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/fit.h"
#include "tensor/rounding.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr double kFewTimesAsMany = 4;   // elements
constexpr double kFewTimesAsLarge = 8;  // differences

bool is_rounded(DType dtype) { return is_float(dtype) && info(dtype).bits > 8; }

// Beyond the last, floats of that dtype are integers because they are large.
bool are_exact_integers(const std::vector<double>& numbers, DType dtype) {
  const double last = 1 / rounding_step(dtype);
  return std::ranges::all_of(numbers, [&](double number) {
    return !std::isfinite(number) || (number == std::rint(number) && std::fabs(number) <= last);
  });
}

bool draws(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node* node) {
    return node->op().traits.random ||
           std::ranges::any_of(node->regions(), [](const auto& region) { return draws(*region); });
  });
}

// Runs a graph with floats that are nudged. What follows from constants and sizes alone is not: sizes may be
// computed of it.
class NudgedRun {
 public:
  NudgedRun(const Graph& graph, uint64_t seed) : graph_(graph), random_(seed) {}

  Data operator()(const Data& inputs) {
    bindings_ = bind_inputs(graph_, inputs);
    for (Value input : graph_.inputs())
      keep(input, nudged(inputs[static_cast<size_t>(input.index())], random_), true);
    for (const Node* node : graph_.nodes())
      run(*node);
    Data outputs;
    for (Value output : graph_.outputs())
      outputs.push_back(take(output));
    return outputs;
  }

 private:
  void run(const Node& node) {
    bool depends = false;
    Data operands;
    for (Value operand : node.operands()) {
      depends = depends || depending_.contains(operand.data());
      operands.push_back(take(operand));
    }
    Data results = evaluate_node(node, operands);
    for (Value result : node.results()) {
      Datum& datum = results[static_cast<size_t>(result.index())];
      if (!node.regions().empty() && !fits(datum, result.type(), bindings_))
        resize_empty(datum, result.type(), bindings_);
      const bool is_computed = depends && node.op().category == Category::Compute;
      if (is_computed || is_weight(node, result))
        datum = nudged(datum, random_);
      keep(result, std::move(datum), depends && !result.known_ints());
    }
  }

  static bool is_weight(const Node& node, Value result) {
    return (node.is("constant") || node.is("parameter")) &&
           std::ranges::count_if(result.shape().dims(), [](const Dim& dim) { return dim != Dim(1); }) >= 2;
  }

  void keep(Value value, Datum datum, bool depends) {
    if (value.use_count() > 0)
      alive_.emplace(value.data(), std::pair(std::move(datum), value.use_count()));
    if (depends)
      depending_.insert(value.data());
  }

  Datum take(Value value) {
    const auto it = alive_.find(value.data());
    if (--it->second.second > 0)
      return it->second.first;
    Datum last = std::move(it->second.first);
    alive_.erase(it);
    return last;
  }

  const Graph& graph_;
  std::mt19937_64 random_;
  Bindings bindings_;
  std::unordered_map<const ValueData*, std::pair<Datum, int64_t>> alive_;  // with uses still to come
  std::unordered_set<const ValueData*> depending_;                         // on inputs
};

// How far elements are from what was expected, and which of them too far.
struct Distances {
  std::vector<bool> is_far;
  double farthest = 0;
};

double distance(double a, double b) {
  if (std::isfinite(a) && std::isfinite(b))
    return std::fabs(a - b);
  return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::numeric_limits<double>::infinity();
}

Distances distances(const std::vector<double>& actual, const std::vector<double>& expected, double allowed) {
  Distances result;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double off = distance(actual[i], expected[i]);
    result.is_far.push_back(off > allowed);
    if (off > allowed)
      result.farthest = std::max(result.farthest, off);
  }
  return result;
}

double largest_finite(const std::vector<double>& numbers) {
  double largest = 0;
  for (double number : numbers)
    if (std::isfinite(number))
      largest = std::max(largest, std::fabs(number));
  return largest;
}

const Tensor* tensor_like(const Datum& datum, const Tensor& expected) {
  const Tensor* tensor = std::get_if<Tensor>(&datum);
  return tensor != nullptr && tensor->dtype() == expected.dtype() && tensor->extents() == expected.extents()
             ? tensor
             : nullptr;
}

}  // namespace

Datum nudged(const Datum& datum, std::mt19937_64& random) {
  if (!std::holds_alternative<Tensor>(datum) || !is_rounded(datum.tensor().dtype()))
    return datum;
  const Tensor& tensor = datum.tensor();
  std::vector<double> numbers = widen<double>(tensor);
  if (are_exact_integers(numbers, tensor.dtype()))
    return datum;
  const double step = rounding_step(tensor.dtype());
  for (double& number : numbers)
    number *= random() % 2 == 0 ? 1 + step : 1 - step;
  return narrow<double>(tensor.dtype(), tensor.extents(), numbers);
}

std::vector<Data> run_nudged(const Graph& model, const Data& inputs, int64_t runs) {
  std::vector<Data> outputs;
  if (draws(model))
    return outputs;
  try {
    for (int64_t run = 0; run < runs; ++run)
      outputs.push_back(NudgedRun(model, static_cast<uint64_t>(run))(inputs));
  } catch (const UserError&) {
    outputs.clear();  // a size depends on a float, say
  }
  return outputs;
}

Explanation explain(const Datum& actual, const Datum& expected, std::span<const Datum> nudged,
                    double tolerance) {
  if (nudged.empty() || !std::holds_alternative<Tensor>(expected))
    return Explanation::None;
  const Tensor& wanted = expected.tensor();
  const Tensor* got = tensor_like(actual, wanted);
  if (got == nullptr || wanted.dtype() == DType::String || kind(wanted.dtype()) == DTypeKind::Complex)
    return Explanation::None;
  const std::vector<double> b = widen<double>(wanted);
  const double allowed = is_float(wanted.dtype()) ? tolerance * largest_finite(b) : 0;
  std::vector<Distances> moves;
  for (const Datum& run : nudged) {
    const Tensor* tensor = tensor_like(run, wanted);
    if (tensor == nullptr)
      return Explanation::None;
    moves.push_back(distances(widen<double>(*tensor), b, allowed));
  }
  const Distances off = distances(widen<double>(*got), b, allowed);

  double unexplained = 0, unmoved = 0, farthest = 0;
  std::vector<double> moved_alone(moves.size());  // elements that no other run moves
  for (size_t i = 0; i < b.size(); ++i) {
    size_t times = 0, last = 0;
    for (size_t run = 0; run < moves.size(); ++run)
      if (moves[run].is_far[i]) {
        ++times;
        last = run;
      }
    unmoved += times == 0;
    unexplained += times == 0 && off.is_far[i];
    if (times == 1)
      ++moved_alone[last];
  }
  for (const Distances& run : moves)
    farthest = std::max(farthest, run.farthest);
  // How far integers lie apart means something only where they are quantised numbers.
  const bool has_size =
      is_float(wanted.dtype()) || (is_integer(wanted.dtype()) && info(wanted.dtype()).bits <= 8);
  if (unexplained > kFewTimesAsMany * *std::ranges::max_element(moved_alone) ||
      (has_size && off.farthest > kFewTimesAsLarge * farthest))
    return Explanation::None;
  return unmoved * 2 < static_cast<double>(b.size()) ? Explanation::Unsteady : Explanation::Rounding;
}

}  // namespace tenon
