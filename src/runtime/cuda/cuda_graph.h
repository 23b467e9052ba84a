// cuda_graph.h — many launches of kernels as one: a CUDA graph, built from what each reads and writes. So no
// run is needed to record it, and kernels that do not need each other may run at once. Arguments can be
// exchanged from one launch to the next.
#pragma once

#include <span>
#include <vector>

#include "runtime/cuda/resources.h"

namespace tenon::runtime::cuda {

struct MemoryRange {
  CUdeviceptr begin;
  int64_t bytes;
};

struct GraphLaunch {
  CUfunction function;
  unsigned blocks, threads, shared_bytes;
  std::vector<uint64_t> arguments;  // of up to 8 bytes each
  std::vector<MemoryRange> reads, writes;
};

// Those before each launch that must have ended when it begins: it reads or writes what they write, or writes
// what they read. Those that others of them come after are left out.
std::vector<std::vector<size_t>> find_dependences(std::span<const GraphLaunch> launches);

class CudaGraph {
 public:
  CudaGraph(std::shared_ptr<const Context> context, std::vector<GraphLaunch> launches);

  // Holds from the next launch on. What the launches read and write may be elsewhere then, if none of it
  // overlaps that did not before.
  void set_argument(size_t launch, size_t argument, uint64_t value);
  void launch(CUstream stream);

 private:
  void add_nodes();
  CUDA_KERNEL_NODE_PARAMS parameters_of(size_t launch);

  std::shared_ptr<const Context> context_;
  std::vector<GraphLaunch> launches_;
  std::vector<CUgraphNode> nodes_;
  std::vector<bool> is_changed_;
  std::vector<void*> pointers_;  // to the arguments of the launch in hand
  Graph graph_;                  // whose nodes name those of the executable one
  ExecutableGraph executable_;
};

}  // namespace tenon::runtime::cuda
