// importer.h — the walk over a model's graphs that turns nodes into ours, one conversion at a time.
#pragma once

#include <map>
#include <tuple>
#include <unordered_map>

#include "frontends/onnx/import.h"
#include "frontends/onnx/import_proto.h"
#include "frontends/onnx/node_view.h"
#include "frontends/onnx/tensor_proto.h"

namespace tenon::onnx {

// Attributes that a function's body refers to by name, as the call gives them.
using CallAttributes = std::unordered_map<std::string_view, const AttributeProto*>;

// The values one graph (or the body of one function call) can name.
struct Scope {
  Graph* graph = nullptr;
  Scope* outer = nullptr;        // of a nested graph; null for the main graph and for function bodies
  Captures* captures = nullptr;  // where a nested graph notes what it takes from outside
  int64_t own_inputs = 0;        // how many inputs a nested graph has before those
  std::unordered_map<std::string_view, Value> values;  // empty for inputs that a function's call leaves out
  std::unordered_map<std::string_view, const TensorProto*>
      initializers;  // made into parameters at their first use
  std::unordered_map<std::string_view, const TypeProto*> declared, declared_outputs;
  std::unordered_map<std::string_view, const SparseTensorProto*> sparse_initializers;
  std::unordered_map<std::string_view, int64_t> opsets;  // by domain
  const CallAttributes* call_attributes = nullptr;
  std::string path = {};  // of the function calls around it, in front of its nodes' names: "block/attention/"
};

class Importer {
 public:
  Importer(const Model& model, const ImportOptions& options, const TensorElements& elements = {});

  std::unique_ptr<Graph> run();

  // The value of this name as seen from `scope`; empty when there is none.
  Value find(Scope& scope, std::string_view name);
  // The same for an input of a node; empty when a function's call leaves it out, an error when nothing makes
  // it.
  Value argument(Scope& scope, std::string_view op_type, std::string_view name);
  std::unique_ptr<Graph> region(Scope& scope, const GraphProto& proto, const std::vector<RegionInput>& inputs,
                                Captures& captures);
  std::vector<Value> inlined(Scope& scope, const GraphProto& proto);

  // `whose` type it is, for errors. Names of dimensions mean nothing inside a sequence, whose elements
  // differ.
  Type type(const TypeProto& proto, std::string_view whose, bool in_sequence = false);
  Literal literal(const TensorProto& tensor);
  Literal literal(const SparseTensorProto& tensor);

 private:
  std::optional<Literal> initializer(const Scope& scope, std::string_view name);
  // The value inside a nested graph that stands for an outer one: an input, or a copy of a small constant.
  static Value capture(Scope& scope, Value outer);
  static Scope nested(Scope& outer, Graph& graph);
  void add_declarations(Scope& scope, const GraphProto& proto);
  // Where a graph's outputs are in its scope.
  std::vector<Value> outputs(Scope& scope, const GraphProto& proto);
  // Of batch normalisation in training, by the names of the initializers.
  std::map<std::string, Value> next_statistics(Scope& scope, const GraphProto& proto);
  void import_nodes(Scope& scope, const std::vector<NodeProto>& nodes);
  void import_node(Scope& scope, const NodeProto& node);
  std::vector<Value> convert(Scope& scope, const NodeProto& node);
  // Those of the outputs that a node names, as the model says.
  Types declared_types(const Scope& scope, const NodeProto& node);
  // What the model says of the value's type, where inference leaves something open.
  void take_declared_type(const Scope& scope, std::string_view name, Value value);
  std::vector<Value> call_function(Scope& scope, const FunctionProto& function, const NodeProto& node);
  const FunctionProto* find_function(const NodeProto& node) const;
  void add_input(Scope& scope, const ValueInfoProto& input);
  static void define(Scope& scope, std::string_view name, Value value);

  const Model& model_;
  const ImportOptions& options_;
  const TensorElements elements_;
  WeightFiles files_;
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const FunctionProto*>
      functions_;                                   // by domain, name and overload
  std::vector<const FunctionProto*> running_ = {};  // the functions being called, outermost first
  int depth_ = 0;                                   // of nested functions and graphs
  int64_t imported_ = 0;                            // nodes, each as often as it was imported
};

// "ai.onnx" is the standard domain too.
inline std::string_view canonical_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

}  // namespace tenon::onnx
