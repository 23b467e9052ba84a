// node_view.h — one node of an exported program as its conversion sees it: arguments by the names of the op's
// schema.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontends/torch/promotion.h"
#include "frontends/torch/schema.h"
#include "ir/graph.h"

namespace tenon::torch {

class Importer;
struct Scope;

// A size that the program gives: an integer, or a value (i64[]) that the graph computes.
using Size = std::variant<int64_t, Value>;

// A graph of its own that a node is converted in, so that it can be differentiated apart from all others.
struct Enclosure {
  Graph& graph;
  std::map<std::string, Value, std::less<>> tensors = {};  // its inputs, by the arguments they stand for
  std::vector<Value> captured = {};   // the values outside that the other inputs stand for
  std::vector<Value> stand_ins = {};  // … and those inputs

  Value capture(Value outside);
};

class NodeView {
 public:
  NodeView(Importer& importer, Scope& scope, const NodeSpec& spec, std::string_view op);
  // The same node with another value for its first tensor.
  NodeView(const NodeView& other, Value first);
  // The same node in another graph. What it looks at counts as looked at by `other`.
  NodeView(const NodeView& other, Enclosure& enclosure);

  Graph& graph() const;
  const NodeSpec& spec() const { return spec_; }
  std::string_view op() const { return op_; }  // add.Tensor, higher_order.cond
  std::string_view overload() const;           // Tensor, of add.Tensor

  // Arguments. Those with a default give it where the argument is left out or None; the others say it is
  // missing.
  bool has(std::string_view name) const;
  Value tensor(std::string_view name) const;
  Value maybe_tensor(std::string_view name) const;
  std::vector<Value> tensors(std::string_view name) const;
  std::vector<Value> optional_tensors(std::string_view name) const;  // empty where there is none
  Term term(std::string_view name) const;                            // a tensor or a number
  int64_t integer(std::string_view name) const;
  int64_t integer(std::string_view name, int64_t otherwise) const {
    return has(name) ? integer(name) : otherwise;
  }
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name, std::vector<int64_t> otherwise) const {
    return has(name) ? integers(name) : otherwise;
  }
  Size size(std::string_view name) const;
  Size size(std::string_view name, Size otherwise) const { return has(name) ? size(name) : otherwise; }
  std::vector<Size> sizes(std::string_view name) const;
  double real(std::string_view name) const;
  double real(std::string_view name, double otherwise) const { return has(name) ? real(name) : otherwise; }
  std::vector<double> reals(std::string_view name) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::vector<bool> flags(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view otherwise) const {
    return has(name) ? text(name) : std::string(otherwise);
  }
  std::vector<std::string> texts(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  DType dtype(std::string_view name, DType otherwise) const { return dtype(name).value_or(otherwise); }
  // Arguments without meaning here.
  void ignore(std::string_view name) const { find(name); }
  void ignore_all() const { used_->assign(used_->size(), true); }
  // The tensor that this argument names has these elements from now on: an op may change more than its first
  // argument.
  void change(std::string_view name, Value value) const;

  // Arguments of higher-order ops, which have no names, by their place.
  size_t argument_count() const { return spec_.inputs.size(); }
  const Argument& argument(size_t index) const;
  // The values that an argument lists: tensors, or one of them, or sizes.
  std::vector<Value> values(size_t index) const;
  const GraphSpec& nested(size_t index) const;
  // Imports the nodes of a nested graph into `graph`, with these values for its inputs; gives its outputs.
  std::vector<Value> import_into(Graph& graph, const GraphSpec& nested,
                                 const std::vector<Value>& inputs) const;

  size_t output_count() const;  // counting those of lists
  // What the file says of a tensor that is an argument; or null.
  const TensorMeta* argument_meta(std::string_view name) const;
  // What the file says of a result, where that is used; or null.
  const TensorMeta* result_meta(size_t index) const;
  DType result_dtype(size_t index, DType otherwise) const;

  // The rank, sizes and axes of a value, for conversions that cannot do without.
  int64_t rank_of(Value x) const;
  int64_t axis(std::string_view name, int64_t rank) const;
  int64_t axis(std::string_view name, int64_t rank, int64_t otherwise) const;
  std::vector<int64_t> axes(std::string_view name,
                            int64_t rank) const;  // one or several; all where left out or none

  // Sizes as an operand: a vector.
  Value vector(const std::vector<Size>& sizes) const;
  Value as_number(const Size& size) const;  // i64[]
  Value number(DType dtype, double value) const;

  std::vector<Value> make(std::string_view op, std::vector<Operand> operands,
                          Attributes attributes = {}) const {
    return graph().create(op, std::move(operands), std::move(attributes))->results();
  }
  Value make_one(std::string_view op, std::vector<Operand> operands, Attributes attributes = {}) const {
    return graph().create(op, std::move(operands), std::move(attributes))->result();
  }

  // An argument that the conversion did not look at may change the meaning: it is an error.
  void check_all_used() const;

 private:
  const Argument* find(std::string_view name) const;  // null where it is left out
  const Argument& get(std::string_view name) const;
  Value enclosed(
      std::string_view argument) const;  // empty where the argument is not an input of an enclosure
  Value resolve(std::string_view tensor) const;
  Value resolve(const SymbolName& number) const;
  [[noreturn]] void refuse(std::string_view name, const Argument& argument, std::string_view wanted) const;

  Importer& importer_;
  Scope& scope_;
  const NodeSpec& spec_;
  std::string_view op_;
  Value first_ = {};  // in place of the first tensor
  Enclosure* enclosure_ = nullptr;
  std::shared_ptr<std::vector<bool>> used_;
};

// a // b of sizes, as Python rounds: downwards.
Value floor_quotient(Value a, Value b);

}  // namespace tenon::torch
