// graph.h — the graph: nodes in a topological order, the values they make, and the edits passes make to them.
//
// A Graph owns its Nodes and Values. `Value` is a handle, passed by value; `Node*` and `Graph&` are borrowed.
// Nested graphs (the regions of control flow) are closed: they see only their own inputs, so every use of a
// value is an operand of a node in the same graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/op.h"

namespace tenon {

class Graph;
class Node;
struct Use;

// What is known of a value's elements before the graph runs: all of them, or, for a small integer tensor,
// each as a dimension expression. It lets shape inference follow Shape → Gather → Mul → Concat → Reshape.
struct Content {
  std::optional<Tensor> tensor;
  std::optional<std::vector<Dim>> dims;  // in row-major order
};

struct ValueData {
  Type type;
  std::string name;
  Graph* graph = nullptr;
  Node* node = nullptr;  // null for a graph input
  int64_t index = 0;     // among the node's results or the graph's inputs
  Use* first_use = nullptr;
  int64_t use_count = 0;
  std::optional<Content> content;
};

class Value {
 public:
  Value() = default;
  explicit Value(ValueData* data) : data_(data) {}
  explicit operator bool() const { return data_ != nullptr; }
  friend bool operator==(Value, Value) = default;
  friend auto operator<=>(Value, Value) = default;

  const Type& type() const { return data_->type; }
  // For tensors, which most values are:
  DType dtype() const { return type().as_tensor().dtype; }
  const Shape& shape() const { return type().as_tensor().shape; }
  int64_t rank() const { return shape().rank(); }
  const Dim& dim(int64_t axis) const { return shape()[axis]; }

  const std::string& name() const { return data_->name; }
  void set_name(std::string name) const { data_->name = std::move(name); }
  // Takes from `declared` what inference could not tell, but for names that other sizes have already: models
  // give one name to sizes that differ. Only while the value has no uses.
  void refine_type(const Type& declared) const;

  Graph& graph() const { return *data_->graph; }
  Node* node() const { return data_->node; }  // null for a graph input
  int64_t index() const { return data_->index; }
  bool is_input() const { return node() == nullptr; }

  int64_t use_count() const { return data_->use_count; }
  bool has_one_use() const { return use_count() == 1; }
  std::vector<Node*> users() const;  // each once, in the graph's order
  // Users take `by` instead, but for the node that makes `by`: so x can be wrapped in an op of x. What
  // follows is inferred again where its types or known elements change.
  void replace_all_uses(Value by) const;

  // The elements, when they are known without running: of any small constant expression …
  const Tensor* known_tensor() const;
  // … or of a small integer tensor, each an integer or an expression over symbolic dimensions.
  std::optional<std::vector<Dim>> known_dims() const;
  std::optional<std::vector<int64_t>> known_ints() const;  // when all of those are integers

  ValueData* data() const { return data_; }

 private:
  ValueData* data_ = nullptr;
};

// One operand slot of a node; the slots that use a value form a list.
struct Use {
  ValueData* value = nullptr;
  Node* user = nullptr;
  Use* next = nullptr;
  Use** link = nullptr;  // what points at this use: the value's first_use or another use's next

  void set(ValueData* to);
};

using Attributes = std::map<std::string, Attribute, std::less<>>;

// The operands of a new node, by name: one value (an empty Value: absent), or a list.
struct Operand {
  Operand(std::string_view name, Value value) : name(name) {
    if (value)
      values.push_back(value);
  }
  Operand(std::string_view name, std::vector<Value> values) : name(name), values(std::move(values)) {}

  std::string_view name;
  std::vector<Value> values;
};

class Node {
 public:
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const OpDef& op() const { return *op_; }
  bool is(std::string_view op_name) const { return op_->name == op_name; }
  Graph& graph() const { return *graph_; }
  Node* next() const { return next_; }  // null after the last (the return node)
  bool comes_before(const Node& other) const { return order_ < other.order_; }  // in the same graph

  // Operands by the names of the declaration. An optional operand that is absent is an empty Value.
  Value in(std::string_view name) const;
  std::vector<Value> ins(std::string_view name) const;
  bool has(std::string_view name) const { return bool(in(name)); }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  Value operand(int64_t index) const { return Value(operands_[static_cast<size_t>(index)].value); }
  std::vector<Value> operands() const;
  // What follows is inferred again where its types or known elements change. If the node no longer makes
  // sense, its types stay, and lint says what is wrong.
  void set_operand(int64_t index, Value value);
  // Where the operands (or the operand of a late attribute) of that name stand: the first, and how many.
  std::pair<size_t, size_t> segment(std::string_view name) const;

  // Attributes by name; those the declaration gives a default are always there. One that is given late, by an
  // operand, is not: is_late says so, and late(name) is that operand.
  const Attribute& attr(std::string_view name) const;
  const Attributes& attributes() const { return attributes_; }
  // Of a constant whose elements a program holds in an order of its own: they are not needed twice.
  void give_up_elements();
  bool is_late(std::string_view name) const { return bool(late(name)); }
  Value late(std::string_view name) const;
  const std::vector<std::string_view>& late_names() const { return late_names_; }

  int64_t result_count() const { return static_cast<int64_t>(results_.size()); }
  Value result(int64_t index = 0) const { return Value(results_[static_cast<size_t>(index)].get()); }
  std::vector<Value> results() const;
  Types result_types() const;

  Graph& region(std::string_view name) const;
  const std::vector<std::unique_ptr<Graph>>& regions() const { return regions_; }

  // The names this node had in the user's model; a node that stands for several carries all of theirs.
  const std::vector<std::string>& sources() const { return sources_; }
  void set_sources(std::vector<std::string> sources) { sources_ = std::move(sources); }

  // How an error speaks of it: node "/block/MatMul" where the user named it, else %41.
  std::string describe() const;

 private:
  friend class Graph;
  Node(Graph& graph, const OpDef& op) : graph_(&graph), op_(&op) {}
  bool infer_again();  // true when a type or known elements changed

  Graph* graph_;
  const OpDef* op_;
  Node* next_ = nullptr;
  Node* previous_ = nullptr;
  int64_t order_ = 0;             // ascends along the graph
  std::vector<Use> operands_;     // never resized once linked
  std::vector<size_t> segments_;  // how many operands each declared operand has, then one per late attribute
  std::vector<std::string_view> late_names_;
  Attributes attributes_;
  std::vector<std::unique_ptr<ValueData>> results_;
  std::vector<std::unique_ptr<Graph>> regions_;
  std::vector<std::string> sources_;
};

// Hands out symbols for dynamic dimensions. Shared by a graph and its regions.
class SymbolSource {
 public:
  Dim fresh();                               // d0, d1, … but never a name in use
  Type name_unknown(const Type& type);       // the same, with a fresh symbol for every unknown dimension
  Type forget_used(const Type& type) const;  // the same, but unknown where a dimension has a name in use
  void reserve(const Type& type);            // its symbols are in use
  void reserve(std::string_view name) { used_.emplace(name); }
  bool is_used(std::string_view name) const { return used_.contains(name); }

 private:
  std::set<std::string, std::less<>> used_;
  int64_t next_ = 0;
};

class Graph {
 public:
  explicit Graph(std::string name = "main");
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // A graph to be a region of a node here.
  std::unique_ptr<Graph> make_region(std::string name) const;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

  Value add_input(const Type& type, std::string name);
  void erase_input(int64_t index);  // it must have no uses
  std::vector<Value> inputs() const;
  int64_t input_count() const { return static_cast<int64_t>(inputs_.size()); }
  Value input(int64_t index) const { return Value(inputs_[static_cast<size_t>(index)].get()); }

  // The outputs are the operands of the return node, the last of the graph. Names default to those of the
  // values.
  void set_outputs(const std::vector<Value>& values, std::vector<std::string> names = {});
  std::vector<Value> outputs() const { return return_->operands(); }
  const std::vector<std::string>& output_names() const { return output_names_; }
  Types output_types() const;
  Node* return_node() const { return return_; }

  // The one gate through which every node is made: it checks operands, attributes and dtypes against the op's
  // declaration, fills in defaults, infers the results' types and follows small constants. The node goes in
  // before the insertion point. `types`, where given, tell what inference leaves unknown.
  Node* create(const OpDef& op, std::vector<Operand> operands, Attributes attributes = {},
               std::vector<std::unique_ptr<Graph>> regions = {}, const Types* types = nullptr);
  Node* create(std::string_view op, std::vector<Operand> operands, Attributes attributes = {},
               std::vector<std::unique_ptr<Graph>> regions = {}, const Types* types = nullptr) {
    return create(require_op(op), std::move(operands), std::move(attributes), std::move(regions), types);
  }

  // Names that nodes made from now on carry as their sources.
  void set_current_sources(std::vector<std::string> sources) { current_sources_ = std::move(sources); }
  const std::vector<std::string>& current_sources() const { return current_sources_; }

  Node* first() const { return first_; }
  int64_t node_count() const { return node_count_; }  // the return node is not counted
  // Every node but the return node, in order. The list is taken when called, so a loop over it may make nodes
  // and erase those it has come past.
  std::vector<Node*> nodes() const;

  void erase(Node* node);  // its results must have no uses
  void move_before(Node* node, Node* other);
  // Replaces all uses of its results, then erases it. The new values take its names, and their nodes its
  // sources, where they have none.
  void replace(Node* node, const std::vector<Value>& by);

  std::unique_ptr<Graph> clone() const;
  // A copy in which the symbols of `sizes` are these numbers or expressions.
  std::unique_ptr<Graph> bind(const std::map<std::string, Dim>& sizes) const;
  // Copies the nodes of `callee` to the insertion point, with `arguments` for its inputs; returns its
  // outputs. The symbols of its inputs become the sizes of the arguments.
  std::vector<Value> inline_graph(const Graph& callee, const std::vector<Value>& arguments);
  // A copy of one node of this or another graph, with operands mapped by `map`.
  Node* copy_node(const Node& node, const std::function<Value(Value)>& map);

  SymbolSource& symbols() const { return *symbols_; }

 private:
  friend class Value;
  friend class Node;
  friend class InsertBefore;
  Graph(std::string name, std::shared_ptr<SymbolSource> symbols);
  // The steps of create. An operand that gives an attribute, and is known, is added to `attributes`.
  void bind_operands(Node& node, std::vector<Operand> operands, Attributes& attributes);
  void set_segments(Node& node, const std::vector<std::vector<Value>>& segments) const;
  static void bind_attributes(Node& node, Attributes attributes);
  void make_results(Node& node, const Types* types);
  void link(Node* node, Node* before);
  void unlink(Node* node);
  void infer_again(const std::vector<Node*>& nodes);  // and what depends on them
  using ValueMap = std::function<Value(Value)>;
  using TypeMap = std::function<Type(const Type&)>;
  Node* copy_node(const Node& node, const ValueMap& map, const TypeMap& map_type);
  std::vector<Value> copy_nodes(const Graph& from, const std::vector<Value>& arguments,
                                const TypeMap& map_type);

  std::string name_;
  std::vector<std::unique_ptr<ValueData>> inputs_;
  std::vector<std::string> output_names_;
  Node* first_ = nullptr;
  Node* return_ = nullptr;
  std::vector<Node*> insertions_;  // where new nodes go: before the last of these
  int64_t node_count_ = 0;
  std::vector<std::string> current_sources_;
  std::shared_ptr<SymbolSource> symbols_;
};

// New nodes go before `node` while this lives.
class InsertBefore {
 public:
  explicit InsertBefore(Node* node) : graph_(node->graph()) { graph_.insertions_.push_back(node); }
  ~InsertBefore() { graph_.insertions_.pop_back(); }
  InsertBefore(const InsertBefore&) = delete;
  InsertBefore& operator=(const InsertBefore&) = delete;

 private:
  Graph& graph_;
};

// New nodes go after `node`, or after what makes `value`, while this lives: the first made comes first.
class InsertAfter : public InsertBefore {
 public:
  explicit InsertAfter(Node* node) : InsertBefore(node->next()) {}
  explicit InsertAfter(Value value)
      : InsertBefore(value.is_input() ? value.graph().first() : value.node()->next()) {}
};

// New nodes carry the sources of `node`, or these, while this lives.
class WithSources {
 public:
  explicit WithSources(const Node& node) : WithSources(node.graph(), node.sources()) {}
  WithSources(Graph& graph, std::vector<std::string> sources)
      : graph_(graph), before_(graph.current_sources()) {
    graph_.set_current_sources(std::move(sources));
  }
  ~WithSources() { graph_.set_current_sources(std::move(before_)); }
  WithSources(const WithSources&) = delete;
  WithSources& operator=(const WithSources&) = delete;

 private:
  Graph& graph_;
  std::vector<std::string> before_;
};

// Calls f(graph) for this graph and then every graph nested in it.
template <class F>
void for_each_graph(Graph& graph, F&& f) {
  f(graph);
  for (Node* node : graph.nodes())
    for (const auto& region : node->regions())
      for_each_graph(*region, f);
}
template <class F>
void for_each_graph(const Graph& graph, F&& f) {
  f(graph);
  for (const Node* node : graph.nodes())
    for (const auto& region : node->regions())
      for_each_graph(std::as_const(*region), f);
}

}  // namespace tenon
