// functions.h — functions of Python's that graphs keep and call: of rules, passes and ops.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "binding/graph.h"

namespace tenon::python {

// A function that is called and let go with the GIL held, whoever calls and lets go.
std::shared_ptr<nb::object> kept(nb::object function);

// A text that lives as long as the process: passes and ops name theirs by views.
std::string_view interned(const std::string& text);

// What a graph lends to a function for the time of a call.
class Lent {
 public:
  explicit Lent(Graph& graph) : handle_(std::make_shared<EditedGraph>(graph)) {}
  ~Lent() { handle_->end(); }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  const GraphHandle& operator*() const { return handle_; }

 private:
  GraphHandle handle_;
};

// What a function returned, a node of this graph or several; no Value for None.
std::vector<Value> returned_values(nb::handle result, const GraphHandle& graph);

}  // namespace tenon::python
