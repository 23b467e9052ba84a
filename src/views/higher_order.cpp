#include "views/higher_order.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/control.h"
#include "ops/data.h"

namespace tenon {
namespace {

bool are_tensors(const std::vector<Value>& values) {
  return std::all_of(values.begin(), values.end(), [](Value v) { return v.type().is_tensor(); });
}

bool is_scalar(Value value) { return value.shape() == Shape(); }

HigherOrderCall call_cond(const Node& node) {
  HigherOrderCall call{.op = "cond"};
  call.graphs.push_back({"true_graph", borrow(node.region("then"))});
  call.graphs.push_back({"false_graph", borrow(node.region("else"))});
  call.condition = node.in("condition");
  call.captured = node.ins("inputs");
  return call;
}

// The graphs of a loop, over the state (iteration, go on, carried, captured, limit). What no iteration asks
// for is left out of it.
class WhileLoop {
 public:
  explicit WhileLoop(const Node& node)
      : body_(node),
        carried_(node.ins("carried")),
        captured_(node.ins("captured")),
        is_limited_(node.has("trip_count")),
        carries_iteration_(is_limited_ || body_.iteration.use_count() > 0),
        carries_go_on_(!ends_by_count(node)) {
    if (is_limited_ && !node.in("trip_count").known_ints())
      limit_ = node.in("trip_count");
    else if (is_limited_)
      known_limit_ = node.in("trip_count").known_ints()->front();
  }

  HigherOrderCall call(const Node& node) {
    HigherOrderCall call{.op = "while_loop"};
    call.graphs.push_back({"while_loop_cond_graph", make_condition(), Returns::Value});
    call.graphs.push_back({"while_loop_body_graph", make_body()});
    if (carries_iteration_)
      call.carried.push_back({.constant = 0});
    if (carries_go_on_)
      call.carried.push_back(node.has("condition") ? Start{node.in("condition")} : Start{.constant = true});
    call.first_result = static_cast<int64_t>(call.carried.size());
    for (Value value : carried_)
      call.carried.push_back({value});
    call.captured = captured_;
    if (limit_)
      call.captured.push_back(limit_);
    return call;
  }

 private:
  struct State {
    Value iteration, go_on, limit;
    std::vector<Value> arguments;  // carried, captured
  };

  State add_inputs(Graph& graph) const {
    State state;
    if (carries_iteration_)
      state.iteration = graph.add_input(Type::tensor(DType::I64, {}), "iteration");
    if (carries_go_on_)
      state.go_on = graph.add_input(Type::tensor(DType::Bool, {}), "go_on");
    for (const auto* inputs : {&body_.carried, &body_.captured})
      for (Value input : *inputs)
        state.arguments.push_back(graph.add_input(input.type(), input.name()));
    if (limit_)
      state.limit = graph.add_input(limit_.type(), "trip_count");
    return state;
  }

  std::unique_ptr<Graph> make_condition() const {
    auto graph = std::make_unique<Graph>("condition");
    const State state = add_inputs(*graph);
    Value go_on = state.go_on;
    if (is_limited_) {
      const Value limit = limit_ ? state.limit : constant(*graph, Literal(Tensor::scalar(known_limit_)));
      const Value in_time = less(state.iteration, limit);
      go_on = go_on ? logical_and(go_on, in_time) : in_time;
    }
    graph->set_outputs({go_on});
    return graph;
  }

  std::unique_ptr<Graph> make_body() const {
    auto graph = std::make_unique<Graph>("body");
    const State state = add_inputs(*graph);
    std::vector<Value> arguments = {carries_iteration_ ? state.iteration : scalar(*graph, DType::I64, 0)};
    arguments.insert(arguments.end(), state.arguments.begin(), state.arguments.end());
    const std::vector<Value> given = graph->inline_graph(body_.graph, arguments);
    std::vector<Value> outputs;
    if (carries_iteration_)
      outputs.push_back(state.iteration + 1);
    outputs.insert(outputs.end(), given.begin() + (carries_go_on_ ? 0 : 1), given.end());
    graph->set_outputs(outputs);
    return graph;
  }

  LoopBody body_;
  std::vector<Value> carried_, captured_;
  bool is_limited_, carries_iteration_, carries_go_on_;
  Value limit_;              // one that is not known
  int64_t known_limit_ = 0;  // one that is
};

// A loop of so many iterations that collects values is a scan of the numbers of the iterations.
HigherOrderCall call_scan_of_turns(const Node& node) {
  const LoopBody body(node);
  auto graph = std::make_unique<Graph>("combine");
  std::vector<Value> arguments(static_cast<size_t>(body.graph.input_count()));
  const auto add = [&](Value input) {
    arguments[static_cast<size_t>(input.index())] = graph->add_input(input.type(), input.name());
  };
  std::ranges::for_each(body.carried, add);
  add(body.iteration);
  std::ranges::for_each(body.captured, add);
  std::vector<Value> outputs = graph->inline_graph(body.graph, arguments);
  outputs.erase(outputs.begin());
  graph->set_outputs(outputs);

  HigherOrderCall call{.op = "scan"};
  call.graphs.push_back({"scan_combine_graph", std::move(graph), Returns::List});
  for (Value value : node.ins("carried"))
    call.carried.push_back({value});
  const auto known = node.in("trip_count").known_ints();
  call.count = known ? Start{.constant = known->front()} : Start{node.in("trip_count")};
  call.captured = node.ins("captured");
  return call;
}

std::optional<HigherOrderCall> call_while(const Node& node) {
  const Graph& body = node.region("body");
  const bool has_scalars = (!node.has("trip_count") || is_scalar(node.in("trip_count"))) &&
                           (!node.has("condition") || is_scalar(node.in("condition"))) &&
                           is_scalar(body.outputs().front());
  if (!has_scalars || !are_tensors(node.operands()) || !are_tensors(body.outputs()))
    return std::nullopt;
  if (node.result_count() == static_cast<int64_t>(node.ins("carried").size()))
    return WhileLoop(node).call(node);
  if (!ends_by_count(node))
    return std::nullopt;
  return call_scan_of_turns(node);
}

std::optional<HigherOrderCall> call_scan(const Node& node) {
  if (!are_tensors(node.operands()))
    return std::nullopt;
  HigherOrderCall call{.op = "scan"};
  call.graphs.push_back({"scan_combine_graph", borrow(node.region("body")), Returns::List});
  for (Value value : node.ins("carried"))
    call.carried.push_back({value});
  call.scanned = node.ins("scanned");
  call.captured = node.ins("captured");
  return call;
}

}  // namespace

std::optional<HigherOrderCall> higher_order_call(const Node& node) {
  if (node.is("if"))
    return call_cond(node);
  if (node.is("while"))
    return call_while(node);
  return node.is("scan") ? call_scan(node) : std::nullopt;
}

}  // namespace tenon
