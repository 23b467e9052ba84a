#include "compiler/split_kernels.h"

#include <algorithm>

namespace tenon::compiler {

using fusion::Missed;
using lowering::BufferId;
using lowering::Group;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Stage;

namespace {

class KernelSplitter {
 public:
  KernelSplitter(const FusedGraph& fused, const KernelGraphContext& context)
      : fused_(fused), graph_(fused.graph()), context_(context) {}

  SplitKernels run() {
    for (const Group& group : fused_.groups()) {
      const std::optional<std::string> reason = obstacle_to(group);
      if (!reason) {
        result_.groups.push_back(group);
        continue;
      }
      const size_t first = result_.groups.size();
      split(group.nodes);
      note_missed(first, *reason);
    }
    return std::move(result_);
  }

 private:
  // Into as few as there can be from the first node on.
  void split(std::span<const size_t> nodes) {
    while (!nodes.empty()) {
      size_t count = nodes.size();
      std::vector<Group> groups = group_again(nodes);
      while (count > 1 && !std::ranges::all_of(groups, [&](const Group& each) { return !obstacle_to(each); }))
        groups = group_again(nodes.first(--count));
      std::ranges::move(groups, std::back_inserter(result_.groups));
      nodes = nodes.subspan(count);
    }
  }

  // These nodes by themselves.
  std::vector<Group> group_again(std::span<const size_t> numbers) const {
    std::vector<KernelNode> nodes;
    std::set<BufferId> written;
    for (size_t number : numbers) {
      nodes.push_back(graph_.nodes[number]);
      written.insert(nodes.back().writes.begin(), nodes.back().writes.end());
    }
    std::vector<Group> groups =
        fusion::group_nodes(nodes, graph_.buffers, written, context_.target, context_.numerics).groups;
    for (Group& group : groups)
      for (size_t& node : group.nodes)
        node = numbers[node];
    return groups;
  }

  std::optional<std::string> obstacle_to(const Group& group) const {
    if (group.nodes.size() < 2 || !graph_.nodes[group.nodes.front()].stage)
      return std::nullopt;
    const int64_t blocks = blocks_of(group);
    if (blocks == 0)
      return "a thread block has too little shared memory for both";
    const auto has_more = [&](const size_t& node) {
      return blocks_of(group_again(std::span(&node, 1)).front()) > 1;
    };
    // Attention has tiles that were chosen for what a multiprocessor has.
    if (blocks == 1 && group.pattern != lowering::Pattern::FusedAttention &&
        std::ranges::all_of(group.nodes, has_more))
      return "a multiprocessor has shared memory for one thread block of both, and for several of each";
    return std::nullopt;
  }

  int64_t blocks_of(const Group& group) const {
    std::vector<Stage> stages;
    for (size_t node : group.nodes)
      stages.push_back(*graph_.nodes[node].stage);
    const loops::Kernel kernel = context_.backend.schedule(
        stages, group, fused_.needed_outside(group), graph_.buffers, {context_.target, context_.threads});
    return context_.backend.occupancy(kernel, context_.target);
  }

  void note_missed(size_t first_group, const std::string& reason) {
    std::map<BufferId, size_t> makers;
    for (size_t group = first_group; group < result_.groups.size(); ++group)
      for (size_t node : result_.groups[group].nodes) {
        for (BufferId buffer : graph_.nodes[node].reads)
          if (const auto maker = makers.find(buffer); maker != makers.end() && maker->second != group)
            result_.missed.push_back({buffer, node, reason});
        for (BufferId buffer : graph_.nodes[node].writes)
          makers.emplace(buffer, group);
      }
  }

  const FusedGraph& fused_;
  const KernelGraph& graph_;
  const KernelGraphContext& context_;
  SplitKernels result_;
};

}  // namespace

SplitKernels split_kernels(const FusedGraph& graph, const KernelGraphContext& context) {
  return KernelSplitter(graph, context).run();
}

}  // namespace tenon::compiler
