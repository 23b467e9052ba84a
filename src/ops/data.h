// data.h — where values come from: constants and parameters.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& data_ops();

Value constant(Graph& graph, Literal value);
// A rank-0 constant of this dtype: what a number in a formula becomes.
Value scalar(Graph& graph, DType dtype, double value);
Value int_vector(Graph& graph, const std::vector<int64_t>& values);
// A trained weight, under the name the user knows it by.
Value parameter(Graph& graph, std::string name, Literal value);

// The literal of a constant or parameter; null for other nodes and their values.
const Literal* literal_of(const Node& node);
const Literal* literal_of(Value value);

// What to call a value that is computed of constants and parameters alone and has no name: as that with the
// most elements it is made of, of those that are not kept themselves. Empty where there is none.
std::string name_by_origin(Value value, const std::function<bool(Value)>& is_kept);

}  // namespace tenon
