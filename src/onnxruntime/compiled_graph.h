// compiled_graph.h — a program of ours that runs in the place of a graph of ONNX Runtime's.
#pragma once

#include <atomic>

#include "onnxruntime/api.h"
#include "runtime/executor.h"

namespace tenon::onnxruntime {

class CompiledGraph {
 public:
  // `node` is the one that takes the graph's place; its inputs and outputs are passed by their numbers.
  CompiledGraph(std::shared_ptr<const runtime::Executor> program, const Ort::ConstNode& node, int threads);

  // Several threads may call it at once.
  void run(const Ort::KernelContext& call) const;

 private:
  void find_fixed_ports();
  // False where the inputs are not as they should be.
  bool run_fixed(const Ort::KernelContext& call, const runtime::RunOptions& options) const;
  void run_into(const Ort::KernelContext& call, const Data& inputs, const std::vector<Extents>& sizes,
                const runtime::RunOptions& options) const;

  const std::shared_ptr<const runtime::Executor> program_;
  std::vector<size_t> inputs_, outputs_;  // of the node, for each of the program
  int threads_;
  // Where all sizes are fixed, and all elements lie in ONNX Runtime's memory as they do in ours: what inputs
  // and outputs are, so that a run need not find out.
  struct FixedPort {
    DType dtype;
    Extents extents;
  };
  bool is_fixed_ = false;
  std::vector<FixedPort> fixed_inputs_, fixed_outputs_;
  mutable std::atomic<uint64_t> runs_ = 0;  // so that random ops draw other numbers each time
};

}  // namespace tenon::onnxruntime
