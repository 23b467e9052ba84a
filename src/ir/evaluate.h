// evaluate.h — the reference evaluator: runs a graph node by node through the ops' eval. It is the oracle
// that everything compiled is compared with.
#pragma once

#include "ir/graph.h"
#include "ir/random_generator.h"

namespace tenon {

// One application of an op: what its eval gets to see.
class Call {
 public:
  // `run_region` runs a nested graph by its name; the reference evaluator, where there is none.
  using RunRegion = std::function<Data(std::string_view region, const Data& inputs)>;
  Call(const Node& node, std::span<const Datum> operands, RandomGenerator& random,
       const RunRegion* run_region = nullptr)
      : node_(node), operands_(operands), random_(random), run_region_(run_region) {}

  const Node& node() const { return node_; }
  // Operands by the names of the declaration.
  bool has(std::string_view name) const { return !all(name).empty(); }
  const Tensor& in(std::string_view name) const { return datum(name).tensor(); }
  const Datum& datum(std::string_view name) const;
  std::span<const Datum> all(std::string_view name) const;
  std::vector<Tensor> tensors(std::string_view name) const;  // of an operand that takes many

  // Attributes by name; one that is given late is read from its operand.
  Attribute attr(std::string_view name) const;

  // Runs a nested graph.
  Data run(std::string_view region, const Data& inputs) const;

  RandomGenerator& random() const { return random_; }

 private:
  const Node& node_;
  std::span<const Datum> operands_;
  RandomGenerator& random_;
  const RunRegion* run_region_;
};

struct EvaluateOptions {
  uint64_t seed = 0;  // of the random ops
  std::function<void(const Node&)> before_node =
      nullptr;  // told of each node of the graph, not of nested ones
};

// The outputs of `graph` for `inputs`. Inputs that do not fit the graph's input types are the user's fault.
Data evaluate(const Graph& graph, const Data& inputs, const EvaluateOptions& options = {});

// The results of one node.
Data evaluate_node(const Node& node, std::span<const Datum> operands);

}  // namespace tenon
