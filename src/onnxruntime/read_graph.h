// read_graph.h — graphs that ONNX Runtime holds as ours, without a file in between.
#pragma once

#include "ir/graph.h"
#include "onnxruntime/api.h"

namespace tenon::onnxruntime {

// What becomes of weights that ONNX Runtime has in memory: its graph lives no longer than the call that it is
// given to. Those in files of their own are mapped.
enum class Weights {
  View,  // for a graph that is looked at meanwhile
  Copy,
};

// What Tenon lacks is a UserError that names the node.
std::unique_ptr<Graph> read_graph(const Ort::ConstGraph& graph, Weights weights);

}  // namespace tenon::onnxruntime
