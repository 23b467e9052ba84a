// forms.h — the forms a graph can be shown in, one file each.
#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon {

std::string show_as_fx(const Graph& graph);
std::string show_as_fx_code(const Graph& graph);
std::string show_as_torchscript(const Graph& graph);
std::string show_as_onnx(const Graph& graph);
std::string show_as_hlo(const Graph& graph);
std::string show_as_relay(const Graph& graph);
std::string show_as_cpp(const Graph& graph);
std::string show_as_dot(const Graph& graph);
std::string show_as_dependencies(const Graph& graph);

}  // namespace tenon
