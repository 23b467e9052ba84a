#include "runtime/cuda/cuda_graph.h"

#include <algorithm>

namespace tenon::runtime::cuda {
namespace {

bool overlap(const MemoryRange& a, const MemoryRange& b) {
  return a.begin < b.begin + static_cast<CUdeviceptr>(b.bytes) &&
         b.begin < a.begin + static_cast<CUdeviceptr>(a.bytes);
}

bool overlap(const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
  return std::ranges::any_of(a, [&](const MemoryRange& one) {
    return std::ranges::any_of(b, [&](const MemoryRange& other) { return overlap(one, other); });
  });
}

bool must_follow(const GraphLaunch& later, const GraphLaunch& earlier) {
  return overlap(earlier.writes, later.reads) || overlap(earlier.writes, later.writes) ||
         overlap(earlier.reads, later.writes);
}

}  // namespace

std::vector<std::vector<size_t>> find_dependences(std::span<const GraphLaunch> launches) {
  std::vector<std::vector<size_t>> direct(launches.size());
  std::vector<std::vector<bool>> all(launches.size(), std::vector<bool>(launches.size()));
  for (size_t later = 0; later < launches.size(); ++later)
    for (size_t earlier = later; earlier-- > 0;) {
      if (all[later][earlier] || !must_follow(launches[later], launches[earlier]))
        continue;
      direct[later].push_back(earlier);
      all[later][earlier] = true;
      for (size_t before = 0; before < earlier; ++before)
        if (all[earlier][before])
          all[later][before] = true;
    }
  return direct;
}

CudaGraph::CudaGraph(std::shared_ptr<const Context> context, std::vector<GraphLaunch> launches)
    : context_(std::move(context)), launches_(std::move(launches)), is_changed_(launches_.size()) {
  const CurrentContext current(*context_);
  CUgraph graph = nullptr;
  context_->check(driver().cuGraphCreate(&graph, 0), "make a graph");
  graph_ = {context_, graph};
  add_nodes();
  CUgraphExec executable = nullptr;
  context_->check(driver().cuGraphInstantiate(&executable, graph, 0), "make a graph executable");
  executable_ = {context_, executable};
}

void CudaGraph::add_nodes() {
  const std::vector<std::vector<size_t>> dependences = find_dependences(launches_);
  for (size_t i = 0; i < launches_.size(); ++i) {
    std::vector<CUgraphNode> after;
    for (const size_t earlier : dependences[i])
      after.push_back(nodes_[earlier]);
    const CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(i);
    CUgraphNode node = nullptr;
    context_->check(
        driver().cuGraphAddKernelNode(&node, graph_.get(), after.data(), after.size(), &parameters),
        "add a kernel to a graph");
    nodes_.push_back(node);
  }
}

CUDA_KERNEL_NODE_PARAMS CudaGraph::parameters_of(size_t launch) {
  GraphLaunch& of = launches_[launch];
  pointers_.clear();
  for (uint64_t& argument : of.arguments)
    pointers_.push_back(&argument);
  return {.func = of.function,
          .gridDimX = of.blocks,
          .gridDimY = 1,
          .gridDimZ = 1,
          .blockDimX = of.threads,
          .blockDimY = 1,
          .blockDimZ = 1,
          .sharedMemBytes = of.shared_bytes,
          .kernelParams = pointers_.data(),
          .extra = nullptr,
          .kern = nullptr,
          .ctx = nullptr};
}

void CudaGraph::set_argument(size_t launch, size_t argument, uint64_t value) {
  uint64_t& current = launches_[launch].arguments[argument];
  if (current == value)
    return;
  current = value;
  is_changed_[launch] = true;
}

void CudaGraph::launch(CUstream stream) {
  const CurrentContext current(*context_);
  for (size_t i = 0; i < launches_.size(); ++i) {
    if (!is_changed_[i])
      continue;
    const CUDA_KERNEL_NODE_PARAMS parameters = parameters_of(i);
    context_->check(driver().cuGraphExecKernelNodeSetParams(executable_.get(), nodes_[i], &parameters),
                    "exchange the arguments of a kernel");
    is_changed_[i] = false;
  }
  context_->check(driver().cuGraphLaunch(executable_.get(), stream), "launch a graph");
}

}  // namespace tenon::runtime::cuda
