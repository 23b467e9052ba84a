#include "passes/target/compute_weights.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/evaluate.h"
#include "ops/data.h"
#include "passes/passes.h"
#include "passes/target/constant_pieces.h"

namespace tenon {
namespace {

constexpr int64_t kSmall = 64 << 10;   // in bytes: results may be as large, whatever they are made of
constexpr int64_t kSpread = 4;         // times as large as bytes are floats
constexpr int64_t kAtOnce = 32 << 20;  // in bytes: constants that are read before memory is given back

int64_t bytes_of(Value value) { return element_count(*value.shape().extents()) * info(value.dtype()).bytes; }

// The bytes of a constant; one number repeated takes none.
int64_t bytes_stored(const Literal& literal) {
  return literal.is_stored() ? literal.count() * info(literal.dtype()).bytes : 0;
}

using Predicate = bool (*)(const Node&);

// The nodes that only constants lead to, but those that stay.
class Weights {
 public:
  Weights(Graph& graph, Predicate stays) : graph_(graph), stays_(stays) {
    for (const Node* node : graph.nodes())
      if (node->is("conv") || node->is("conv_transpose"))
        add_filters(node->in("w"));
    for (const Node* node : graph.nodes())
      if (literal_of(*node) != nullptr)
        constants_behind_[node->result().data()] = {node->result()};
      else if (is_computed(*node))
        for (Value result : node->results())
          constants_behind_[result.data()] = constants_behind(*node);
    for (const Node* node : graph.nodes())
      if (literal_of(*node) == nullptr)
        for (Value result : node->results())
          if (constants_behind_.contains(result.data()) && !is_constant(result) && is_used_elsewhere(result))
            results_.push_back(result);
  }

  // The next that can be computed together; empty when there are no more.
  std::vector<Value> take() {
    std::set<Value> constants;
    std::vector<Value> taken;
    for (int64_t bytes = 0; !results_.empty() && bytes < kAtOnce; results_.pop_back()) {
      taken.push_back(results_.back());
      for (Value each : constants_behind_.at(taken.back().data()))
        if (constants.insert(each).second)
          bytes += tenon::bytes_stored(*literal_of(each));
    }
    return taken;
  }

  // A graph of its own, which computes them.
  static std::unique_ptr<Graph> alone(const std::vector<Value>& results) {
    auto graph = std::make_unique<Graph>("weights");
    std::map<const ValueData*, Value> copies;
    const auto copy = [&](const auto& self, Value value) -> Value {
      if (const auto it = copies.find(value.data()); it != copies.end())
        return it->second;
      for (Value operand : value.node()->operands())
        self(self, operand);
      const Node* node =
          graph->copy_node(*value.node(), [&](Value operand) { return copies.at(operand.data()); });
      for (int64_t i = 0; i < node->result_count(); ++i)
        copies.emplace(value.node()->result(i).data(), node->result(i));
      return copies.at(value.data());
    };
    std::vector<Value> outputs;
    for (Value result : results)
      outputs.push_back(copy(copy, result));
    graph->set_outputs(outputs);
    return graph;
  }

  void defer(const std::vector<Value>& results, Journal& journal) {
    const auto weights = std::make_shared<const WeightsGraph>(alone(results));
    for (size_t i = 0; i < results.size() && journal.is_open(); ++i) {
      const InsertBefore here(graph_.first());
      const WithSources sources(*results[i].node());
      const Value computed =
          constant(graph_, Literal::deferred(results[i].dtype(), *results[i].shape().extents(),
                                             std::make_shared<const ComputedWeight>(weights, i)));
      journal.applied("compute-weights", {results[i].node()}, Numerics::Reassociates);
      results[i].replace_all_uses(computed);
    }
  }

 private:
  static int64_t bytes_stored(const std::set<Value>& constants) {
    int64_t bytes = 0;
    for (Value constant : constants)
      bytes += tenon::bytes_stored(*literal_of(constant));
    return bytes;
  }

  // All that a node's operands are made of.
  std::set<Value> constants_behind(const Node& node) const {
    std::set<Value> constants;
    for (Value operand : node.operands()) {
      const std::set<Value>& behind = constants_behind_.at(operand.data());
      constants.insert(behind.begin(), behind.end());
    }
    return constants;
  }

  bool is_computed(const Node& node) const {
    if (node.op().traits.random || !node.regions().empty() || node.operand_count() == 0 || stays_(node))
      return false;
    const std::vector<Value> operands = node.operands(), results = node.results();
    if (!std::all_of(operands.begin(), operands.end(),
                     [&](Value operand) { return constants_behind_.contains(operand.data()); }))
      return false;
    const int64_t stored = bytes_stored(constants_behind(node));
    return std::all_of(results.begin(), results.end(), [&](Value result) {
      const int64_t most = filters_.contains(result.data()) ? kSpread * stored : stored;
      return result.type().is_tensor() && result.dtype() != DType::String && result.shape().extents() &&
             bytes_of(result) <= std::max(most, kSmall);
    });
  }

  // What weights of convolutions are made of. These are read for each pixel again, so that it pays to have
  // them as they are multiplied, though they may be held in bytes.
  void add_filters(Value weights) {
    std::vector<Value> waiting = {weights};
    while (!waiting.empty()) {
      const Value next = waiting.back();
      waiting.pop_back();
      if (next.is_input() || literal_of(next) != nullptr || !filters_.insert(next.data()).second)
        continue;
      const std::vector<Value> operands = next.node()->operands();
      waiting.insert(waiting.end(), operands.begin(), operands.end());
    }
  }

  bool is_used_elsewhere(Value value) const {
    const std::vector<Node*> users = value.users();
    return std::any_of(users.begin(), users.end(), [&](const Node* user) {
      return user->result_count() == 0 || !constants_behind_.contains(user->result().data());
    });
  }

  Graph& graph_;
  const Predicate stays_;
  std::set<const ValueData*> filters_;
  std::vector<Value> results_;  // that others use, and that are not computed yet
  std::map<const ValueData*, std::set<Value>> constants_behind_;
};

bool is_byte(Value value) {
  return value.type().is_tensor() && (value.dtype() == DType::I8 || value.dtype() == DType::U8);
}

bool moves_bytes(const Node& node) {
  return node.op().category == Category::Shape && std::ranges::all_of(node.results(), is_byte);
}

void compute(Graph& graph, Journal& journal, Predicate stays) {
  Weights weights(graph, stays);
  for (std::vector<Value> results = weights.take(); !results.empty() && journal.is_open();
       results = weights.take())
    weights.defer(results, journal);
}

}  // namespace

WeightsGraph::WeightsGraph(std::unique_ptr<Graph> graph)
    : graph_(std::move(graph)), varies_(std::ranges::any_of(graph_->nodes(), [](const Node* node) {
        const Literal* literal = literal_of(*node);
        return literal != nullptr && literal->varies();
      })) {}

Tensor WeightsGraph::result(size_t output) const {
  const std::lock_guard lock(mutex_);
  if (results_.empty() || varies_)
    results_ = evaluate(*graph_, {});
  return results_[output].tensor();
}

const ComputedWeight* computed_weight(const Literal& literal) {
  const auto* deferred = std::get_if<Literal::Deferred>(&literal.form());
  return deferred == nullptr ? nullptr : dynamic_cast<const ComputedWeight*>(deferred->get());
}

void compute_weights(Graph& graph, Journal& journal, bool keeps_halves) {
  compute(
      graph, journal, keeps_halves ? widens_halves : [](const Node&) { return false; });
}

void compute_weights_of_bytes(Graph& graph, Journal& journal) {
  compute(graph, journal, [](const Node& node) { return !moves_bytes(node); });
}

}  // namespace tenon
