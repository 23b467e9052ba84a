// node_view.h — one ONNX node as its conversion sees it: operands as values, attributes by name and kind, the
// opset.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "frontends/onnx/proto.h"
#include "ir/graph.h"
#include "tensor/literal.h"

namespace tenon::onnx {

class Importer;
struct Scope;

// The outer values that a nested graph uses: they come in as its last inputs, in this order.
struct Captures {
  std::vector<Value> outer;
};

// One input of a nested graph as the model declares it: ours is of this type; or, where it is the same in
// every run, there is a constant in its place.
using RegionInput = std::variant<Type, Tensor>;

class NodeView {
 public:
  NodeView(Importer& importer, Scope& scope, const NodeProto& proto, int64_t opset);
  // The same node with other inputs, its attributes read as those of another opset.
  NodeView with(std::vector<Value> inputs, int64_t opset) const;

  Graph& graph() const;
  const NodeProto& proto() const { return proto_; }
  std::string_view op_type() const { return proto_.op_type; }
  int64_t opset() const { return opset_; }  // the version of the node's own domain

  // Inputs. in(i) must be there; maybe(i) is empty where the model leaves it out.
  size_t input_count() const { return inputs_.size(); }
  const std::vector<Value>& inputs() const { return inputs_; }  // empty where left out
  Value in(size_t index) const;
  Value maybe(size_t index) const;
  std::vector<Value> ins(size_t from = 0) const;  // all from there on, none left out
  // The rank of a value, for conversions that cannot do without.
  int64_t rank_of(Value x) const;
  // The elements of an input that must be known when the model is read.
  std::vector<int64_t> constant_ints(size_t index, std::string_view what) const;

  size_t output_count() const { return proto_.output.size(); }
  bool wants(size_t output) const { return output < proto_.output.size() && !proto_.output[output].empty(); }

  // Attributes. The forms with a default give it where the attribute is absent; the others say it is missing.
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const {
    return has(name) ? integer(name) : otherwise;
  }
  bool flag(std::string_view name, bool otherwise) const { return integer(name, otherwise) != 0; }
  double real(std::string_view name) const;
  double real(std::string_view name, double otherwise) const { return has(name) ? real(name) : otherwise; }
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const {
    return has(name) ? text(name) : std::string(otherwise);
  }
  // What one of ONNX's words means here. Any other than these is an error.
  template <class T>
  T translate(std::string_view name, std::initializer_list<std::pair<std::string_view, T>> words) const {
    return translate_word(name, text(name), words);
  }
  template <class T>
  T translate(std::string_view name, std::string_view otherwise,
              std::initializer_list<std::pair<std::string_view, T>> words) const {
    return translate_word(name, text(name, otherwise), words);
  }
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise) const {
    return has(name) ? integers(name) : otherwise;
  }
  std::vector<double> reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  Literal literal(std::string_view name) const;  // dense, also of a sparse tensor
  DType dtype(std::string_view name) const;      // of an integer attribute that holds a TensorProto.DataType
  DType dtype(std::string_view name, DType otherwise) const { return has(name) ? dtype(name) : otherwise; }
  Type type(std::string_view name) const;
  const GraphProto& graph_proto(std::string_view name) const;

  // Imports a nested graph. What it captures is added to `captures`, and it takes those that were there
  // already too, so that several regions of a node end up with the same inputs.
  std::unique_ptr<Graph> region(const GraphProto& proto, const std::vector<RegionInput>& inputs,
                                Captures& captures) const;
  // Gives a region imported earlier, with `own_inputs` inputs of its own, those for values that were captured
  // since.
  static void add_missing_captures(Graph& region, size_t own_inputs, const Captures& captures);
  // Imports the nodes of a nested graph without inputs in place of this node; gives its outputs.
  std::vector<Value> inlined(const GraphProto& proto) const;

  // The node's result, for ops whose conversion is one node with operands and attributes as given.
  std::vector<Value> make(std::string_view op, std::vector<Operand> operands,
                          Attributes attributes = {}) const {
    return graph().create(op, std::move(operands), std::move(attributes))->results();
  }

 private:
  std::string about(std::string_view attribute) const;  // how an error about its value starts
  const AttributeProto* find(std::string_view name) const;
  const AttributeProto& get(std::string_view name, AttributeType type) const;
  template <class T>
  T translate_word(std::string_view name, const std::string& word,
                   std::initializer_list<std::pair<std::string_view, T>> words) const {
    std::vector<std::string_view> known;
    for (const auto& [theirs, ours] : words) {
      if (word == theirs)
        return ours;
      known.push_back(theirs);
    }
    throw_unknown_word(name, word, known);
  }
  [[noreturn]] void throw_unknown_word(std::string_view name, std::string_view word,
                                       const std::vector<std::string_view>& known) const;

  Importer& importer_;
  Scope& scope_;
  const NodeProto& proto_;
  int64_t opset_;
  std::vector<Value> inputs_ = {};  // empty where left out
};

}  // namespace tenon::onnx
