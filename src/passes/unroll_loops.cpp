#include "ops/data.h"
#include "ops/gather.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "passes/attempt.h"
#include "passes/passes.h"
#include "passes/pipeline.h"
#include "rewrite/match.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "unroll";
constexpr int64_t kMostNodes = 64;  // that a loop of more than one iteration may become

bool is_known(Value value, bool wanted) {
  const std::optional<double> number = uniform_number(value);
  return number && (*number != 0) == wanted;
}

// How many iterations a loop takes, where that is known.
std::optional<int64_t> iterations_of(const Node& node) {
  if (node.is("scan")) {
    const Value first = node.ins("scanned").front();
    const std::vector<int64_t>& axes = node.attr("axes");
    return first.shape().ranked() ? first.dim(axes.front()).constant() : std::nullopt;
  }
  if (!node.is("while"))
    return std::nullopt;
  const Value condition = node.in("condition"), go_on = node.region("body").outputs().front();
  if (condition && is_known(condition, false))
    return 0;
  if (condition && !is_known(condition, true))
    return std::nullopt;
  std::optional<int64_t> limit;
  if (node.has("trip_count")) {
    const auto known = node.in("trip_count").known_ints();
    if (!known || known->size() != 1)
      return std::nullopt;
    limit = std::max<int64_t>(known->front(), 0);
  }
  if (is_known(go_on, false))
    return limit ? std::min<int64_t>(*limit, 1) : 1;
  return is_known(go_on, true) ? limit : std::nullopt;
}

// What each iteration collected, stacked along a new axis.
Value stacked(std::vector<Value> parts, int64_t axis, bool reversed) {
  if (reversed)
    std::reverse(parts.begin(), parts.end());
  for (Value& part : parts)
    part = unsqueeze(part, {axis});
  return parts.size() == 1 ? parts.front() : concat(parts, axis);
}

// The arguments of the body besides the carried values, in an iteration.
std::vector<Value> slices(const Node& scan, int64_t iteration, int64_t iterations) {
  const std::vector<Value> scanned = scan.ins("scanned");
  const std::vector<int64_t>&axes = scan.attr("axes"), &reversed = scan.attr("reversed");
  std::vector<Value> slices;
  for (size_t i = 0; i < scanned.size(); ++i) {
    const int64_t index = reversed[i] != 0 ? iterations - 1 - iteration : iteration;
    slices.push_back(gather(scanned[i], constant(scan.graph(), Tensor::scalar(index)), axes[i]));
  }
  return slices;
}

std::vector<Value> unrolled(Node& node, int64_t iterations) {
  Graph& graph = node.graph();
  const Graph& body = node.region("body");
  const bool is_while = node.is("while");
  std::vector<Value> carried = node.ins("carried");
  std::vector<std::vector<Value>> collected(static_cast<size_t>(node.result_count()) - carried.size());
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    std::vector<Value> arguments;
    if (is_while)
      arguments.push_back(constant(graph, Tensor::scalar(iteration)));
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    if (!is_while)
      for (Value slice : slices(node, iteration, iterations))
        arguments.push_back(slice);
    for (Value captured : node.ins("captured"))
      arguments.push_back(captured);
    std::vector<Value> outputs = graph.inline_graph(body, arguments);
    outputs.erase(outputs.begin(), outputs.begin() + is_while);
    std::copy_n(outputs.begin(), carried.size(), carried.begin());
    for (size_t i = 0; i < collected.size(); ++i)
      collected[i].push_back(outputs[carried.size() + i]);
  }
  std::vector<Value> results = carried;
  for (size_t i = 0; i < collected.size(); ++i) {
    const bool reversed = !is_while && node.attr("output_reversed").as<std::vector<int64_t>>()[i] != 0;
    const int64_t axis = is_while ? 0 : node.attr("output_axes").as<std::vector<int64_t>>()[i];
    results.push_back(stacked(collected[i], axis, reversed));
  }
  return results;
}

// Why a loop of so many iterations is not unrolled; empty when it can be.
std::string why_not(const Node& node, int64_t iterations) {
  const auto carried = static_cast<int64_t>(node.ins("carried").size());
  if (iterations == 0 && node.result_count() > carried)
    return "it has no iterations and stacks outputs of a dynamic shape";
  const int64_t nodes = iterations * count_nodes(node.region("body"));
  if (iterations > 1 && nodes > kMostNodes)
    return fmt::format("it would become {} nodes", nodes);
  return "";
}

void unroll_in(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    for (const auto& region : node->regions())
      unroll_in(*region, journal);
    const std::optional<int64_t> iterations = iterations_of(*node);
    if (!iterations)
      continue;
    if (const std::string reason = why_not(*node, *iterations); !reason.empty()) {
      journal.declined(kRule, *node, reason);
      continue;
    }
    if (!journal.is_open())
      return;
    const Attempt attempt = make_instead_of(node, [&] { return unrolled(*node, *iterations); });
    if (!attempt.values) {
      journal.declined(kRule, *node, attempt.error);
      continue;
    }
    journal.applied(kRule, {node}, Numerics::BitExact);
    graph.replace(node, *attempt.values);
  }
}

}  // namespace

void unroll_loops(Graph& graph, Journal& journal) {
  unroll_in(graph, journal);
  remove_dead(graph, journal);
}

}  // namespace tenon
