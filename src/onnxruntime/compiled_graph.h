// compiled_graph.h — a graph of ONNX Runtime's as a program of ours, which runs in its place.
#pragma once

#include <atomic>

#include "compiler/compile_context.h"
#include "onnxruntime/api.h"
#include "runtime/executor.h"

namespace tenon::onnxruntime {

// That ONNX Runtime can pass what it takes and gives: tensors. Anything else is an UnsupportedError.
void check_passable(const Graph& graph);

class CompiledGraph {
 public:
  // `node` is the one that takes the graph's place; its inputs and outputs are passed by their numbers.
  CompiledGraph(const Ort::ConstGraph& graph, const Ort::ConstNode& node,
                const compiler::CompileContext& context);

  // Several threads may call it at once.
  void run(const Ort::KernelContext& call) const;

 private:
  void run_into(const Ort::KernelContext& call, const Data& inputs, const std::vector<Extents>& sizes,
                const runtime::RunOptions& options) const;

  std::unique_ptr<runtime::Executor> program_;
  std::vector<size_t> inputs_, outputs_;  // of the node, for each of the program
  int threads_;
  mutable std::atomic<uint64_t> runs_ = 0;  // so that random ops draw other numbers each time
};

}  // namespace tenon::onnxruntime
