// count_ops.h — how many nodes of each op run whenever a model does: those of nested graphs included, and not
// what follows from constants alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "frontends/onnx/proto.h"
#include "ir/graph.h"

namespace tenon::optimizer {

using Counts = std::map<std::string, int64_t>;

Counts count_ops(const Graph& graph);
Counts count_ops(const onnx::ModelProto& model);  // of a call of a local function, those of its body

int64_t sum(const Counts& counts);

}  // namespace tenon::optimizer
