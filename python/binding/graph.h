// graph.h — graphs, nodes and values as Python edits them.
//
// Python may keep a handle longer than what it stands for: each asks whether that is still there, and where
// it is not, that is an error and no crash.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <unordered_map>

#include "ir/graph.h"

namespace tenon::python {

namespace nb = nanobind;

// A graph as long as Python may edit it.
class EditedGraph : public std::enable_shared_from_this<EditedGraph> {
 public:
  // Of Python's own.
  explicit EditedGraph(std::unique_ptr<Graph> graph) : owned_(std::move(graph)), graph_(owned_.get()) {}
  // One that is lent to a function of Python's until `end`.
  explicit EditedGraph(Graph& graph) : graph_(&graph) {}
  void end() { graph_ = nullptr; }

  Graph& get() const;  // a user_error where it is not there any more
  // How often a node at this address was erased: a handle of an earlier one is out of date.
  uint64_t erasures(const Node* node) const;
  void erase(Node* node);

 private:
  std::unique_ptr<Graph> owned_;
  Graph* graph_;
  std::unordered_map<const Node*, uint64_t> erasures_;
};

using GraphHandle = std::shared_ptr<EditedGraph>;

class NodeHandle {
 public:
  NodeHandle(GraphHandle graph, Node* node)
      : graph_(std::move(graph)), node_(node), erasures_(graph_->erasures(node)) {}

  Node& get() const;
  const GraphHandle& graph() const { return graph_; }
  friend bool operator==(const NodeHandle& a, const NodeHandle& b) {
    return a.node_ == b.node_ && a.erasures_ == b.erasures_;
  }
  size_t hash() const { return std::hash<const void*>()(node_); }

 private:
  GraphHandle graph_;
  Node* node_;
  uint64_t erasures_;
};

class ValueHandle {
 public:
  ValueHandle(GraphHandle graph, Value value)
      : graph_(std::move(graph)),
        value_(value),
        erasures_(value.node() ? graph_->erasures(value.node()) : 0) {}

  Value get() const;
  const GraphHandle& graph() const { return graph_; }
  friend bool operator==(const ValueHandle& a, const ValueHandle& b) {
    return a.value_ == b.value_ && a.erasures_ == b.erasures_;
  }
  size_t hash() const { return std::hash<const void*>()(value_.data()); }

 private:
  GraphHandle graph_;
  Value value_;
  Node* node_ = value_.node();
  uint64_t erasures_;
};

void bind_graph(nb::module_& module);

}  // namespace tenon::python
