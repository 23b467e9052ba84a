// compute_weights.h — moves computations on constants out of the graph: they run once, before it does.
#pragma once

#include <mutex>

#include "ir/graph.h"
#include "rewrite/journal.h"
#include "tensor/datum.h"
#include "tensor/literal.h"

namespace tenon {

// A graph without inputs that computes constants from constants. The reference evaluator runs it where its
// results are asked for without a program for it.
class WeightsGraph {
 public:
  explicit WeightsGraph(std::unique_ptr<Graph> graph);

  const Graph& graph() const { return *graph_; }
  Tensor result(size_t output) const;
  // Whether a constant that it computes from does.
  bool varies() const { return varies_; }

 private:
  std::unique_ptr<Graph> graph_;
  bool varies_;
  mutable std::mutex mutex_;
  mutable Data results_;
};

// One of its results, as the elements of a constant.
class ComputedWeight : public DeferredElements {
 public:
  ComputedWeight(std::shared_ptr<const WeightsGraph> weights, size_t output)
      : weights_(std::move(weights)), output_(output) {}

  const std::shared_ptr<const WeightsGraph>& weights() const { return weights_; }
  size_t output() const { return output_; }
  Tensor tensor() const override { return weights_->result(output_); }
  bool varies() const override { return weights_->varies(); }

 private:
  std::shared_ptr<const WeightsGraph> weights_;
  size_t output_;
};

// Null where the literal is no such.
const ComputedWeight* computed_weight(const Literal& literal);

// Nodes that only constants lead to become deferred constants, unless these take more memory than what they
// are made of, or four times as much for weights of convolutions. Halves may be kept as they are, rather than
// converted to f32.
void compute_weights(Graph& graph, Journal& journal, bool keeps_halves);
// Only bytes, of nodes that move them.
void compute_weights_of_bytes(Graph& graph, Journal& journal);

}  // namespace tenon
