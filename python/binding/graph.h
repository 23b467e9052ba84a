// graph.h — graphs and nodes as Python edits them, in the words of torch.fx.
//
// Python may keep a handle longer than what it stands for: each asks whether that is still there, and where
// it is not, that is an error and no crash.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <unordered_map>

#include "ir/graph.h"
#include "views/naming.h"

namespace tenon::python {

namespace nb = nanobind;

class NodeHandle;

// A graph as long as Python may edit it. It knows the handles that Python holds: one for each thing, so that
// `is`, dictionaries and sets tell nodes apart.
class EditedGraph : public std::enable_shared_from_this<EditedGraph> {
 public:
  // Of Python's own.
  explicit EditedGraph(std::unique_ptr<Graph> graph);
  // One that is lent to a function of Python's until `end`.
  explicit EditedGraph(Graph& graph);
  void end() { graph_ = nullptr; }

  Graph& get() const;  // a user_error where it is not there any more

  nb::object handle(Value value);  // an input, a node's only result, or one of several
  nb::object handle(Node* node);   // a node, whatever it gives; the return node: the output
  nb::tuple handles(const std::vector<Value>& values);
  const std::string& name(const void* key);  // unique in the graph
  nb::dict meta(const void* key);            // what Python keeps beside a node
  void erase(Node* node);
  void erase_input(Value input);

 private:
  friend class NodeHandle;
  friend int traverse_graph(PyObject*, visitproc, void*);
  friend int clear_graph(PyObject*);
  nb::object handle(ValueData* value, Node* node);
  void forget(const void* key);  // what was there is gone
  void name_all();

  std::unique_ptr<Graph> owned_;
  Graph* graph_;
  std::unordered_map<const void*, PyObject*> handles_;  // those that are alive
  std::unordered_map<const void*, nb::dict> metas_;
  std::unordered_map<const void*, std::string> names_;
  ViewNames taken_;
  int64_t constants_ = 0;
};

using GraphHandle = std::shared_ptr<EditedGraph>;

// A node in the sense of torch.fx: an input, an operation and its result, one result of several, or the
// output.
class NodeHandle {
 public:
  enum class Kind : uint8_t { Placeholder, GetAttr, Call, Element, Output };

  // Of a tenon.Graph.
  NodeHandle(nb::object graph, ValueData* value, Node* node)
      : graph_(std::move(graph)), value_(value), node_(node) {}
  NodeHandle(NodeHandle&& other) noexcept
      : graph_(std::move(other.graph_)), value_(other.value_), node_(other.node_) {}
  ~NodeHandle();
  NodeHandle(const NodeHandle&) = delete;
  NodeHandle& operator=(const NodeHandle&) = delete;

  Kind kind() const;
  EditedGraph* graph() const { return nb::inst_ptr<EditedGraph>(graph_); }
  const nb::object& graph_object() const { return graph_; }
  const void* key() const { return value_ != nullptr ? static_cast<const void*>(value_) : node_; }
  Node* node() const;     // null for an input
  bool is_value() const;  // whether it is one tensor (or sequence, …), rather than several or the output
  Value value() const;    // a user_error where it is none
  std::string describe() const;

 private:
  friend class EditedGraph;
  void check() const;

  nb::object graph_;  // of Python's, so that its garbage collector sees what a node keeps
  ValueData* value_;
  Node* node_;
  bool is_known_ = false;  // to the graph, as the one that Python holds
  bool is_erased_ = false;
};

inline const NodeHandle& handle_of(nb::handle object) { return *nb::inst_ptr<NodeHandle>(object); }
// Those of nodes in lists of lists; None is none.
std::vector<Value> values_in(nb::handle object);

// tenon.TensorType.
nb::object type_object(const Type& type);

void bind_graph(nb::module_& module);
void bind_nodes(nb::module_& module);

}  // namespace tenon::python
