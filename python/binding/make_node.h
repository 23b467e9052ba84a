// make_node.h — new nodes of calls in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "binding/graph.h"

namespace tenon::python {

// What tenon.ops calls: in the graph of the first node among the arguments. Several results are a tuple.
nb::object create(const std::string& op_name, const nb::args& positional, const nb::kwargs& named);
// The same in a graph, as one node.
nb::object call_function(const GraphHandle& graph, const std::string& op_name, const nb::tuple& positional,
                         const nb::dict& named);
// A parameter or constant by its name; a new parameter where there are elements.
nb::object get_attr(const GraphHandle& graph, const std::string& target,
                    const std::optional<nb::object>& elements);

}  // namespace tenon::python
