// importer.h — the walk over a program's graphs that turns nodes into ours, one conversion at a time.
#pragma once

#include <map>
#include <set>

#include "frontends/torch/conversions.h"
#include "frontends/torch/import.h"
#include "frontends/torch/tensor_table.h"

namespace tenon::torch {

// What the names of one graph stand for.
struct Scope {
  Graph* graph = nullptr;
  const GraphSpec* spec = nullptr;
  TensorTable tensors = {};
  std::map<std::string, Value, std::less<>> numbers =
      {};  // sizes and other numbers that the graph computes: of rank 0

  Value number(std::string_view name) const;
};

class Importer {
 public:
  // Nodes that cannot be converted are an error, or go to `refused`, where there is such a list.
  Importer(const Program& program, WeightSource weights, std::vector<RefusedNode>* refused = nullptr);

  // Null where nodes were refused.
  std::unique_ptr<Graph> run();

  // Imports a nested graph's nodes into `graph`, with these values for its inputs; gives its outputs.
  std::vector<Value> import_graph(Graph& graph, const GraphSpec& spec, const std::vector<Value>& inputs);

 private:
  // Everything that we do not know, at once.
  void refuse_unknown_ops() const;
  void add_input(Scope& scope, const InputSpec& input);
  Value weight(Graph& graph, const InputSpec& input);
  Value add_user_input(Scope& scope, const std::string& name);
  void set_outputs(Scope& scope);
  void import_nodes(Scope& scope);
  void import_node(Scope& scope, const NodeSpec& node);
  void convert_node(Scope& scope, const NodeSpec& node);
  // Its results are placeholders from now on, so that the nodes after it are looked at, too.
  void refuse(Scope& scope, const NodeSpec& node, const std::string& reason);
  void define_results(Scope& scope, const NodeView& view, const Conversion& conversion, bool in_place,
                      const std::vector<Value>& results);
  void define_tensor(Scope& scope, const NodeView& view, const Conversion& conversion,
                     const std::string& name, size_t index, Value value);
  // A result that a conversion does not give: an error for who uses it; where nodes are refused, this one is.
  void define_missing(Scope& scope, const std::string& name, const std::string& why);
  // Complex numbers are pairs of reals, but where nodes may be refused and some cannot be computed so: then
  // all that take or give complex numbers are.
  bool can_pair(const GraphSpec& graph) const;
  static bool takes_or_gives_complex(const GraphSpec& graph, const NodeSpec& node);
  Found find_conversion_of(const GraphSpec& graph, const NodeSpec& node, std::string_view op) const;
  // What a tensor is held as.
  TensorMeta held(const TensorMeta& meta) const;
  // Whether a value can be what the file says of it.
  bool fits(const TensorMeta& meta, Value value) const;
  bool fits_but_for_ones(const TensorMeta& meta, Value value) const;
  static bool may_be_equal(const std::vector<Dim>& a, const std::vector<Dim>& b);
  Type declared_type(const TensorMeta& meta) const;
  Value output(Scope& scope, const Argument& argument) const;

  const Program& program_;
  const WeightSource weights_;
  std::vector<RefusedNode>* const refused_;
  std::set<std::string, std::less<>> used_;  // where nodes are refused: the names that others use
  bool pairs_ = true;                        // whether complex numbers are pairs
  int depth_ = 0;
};

}  // namespace tenon::torch
