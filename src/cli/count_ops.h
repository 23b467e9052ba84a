// count_ops.h — how many nodes of each op run whenever a model does: those of nested graphs included, and not
// what follows from constants alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "frontends/onnx/proto.h"
#include "ir/graph.h"

namespace tenon::cli {

using Counts = std::map<std::string, int64_t>;

Counts count_ops(const Graph& graph);
Counts count_ops(const onnx::GraphProto& graph);

}  // namespace tenon::cli
