// attention_kernel.h — attention as one kernel of a GPU by name.
#pragma once

#include "passes/target_pipeline.h"
#include "schedule/cuda/attention.h"
#include "schedule/cuda/one_kernel.h"
#include "schedule/start_kernel.h"

namespace tenon {

inline Target gpu_target(int multiprocessors) {
  Target target = target_named("avx2");
  target.gpu = gpu_named("sm_90");
  target.gpu->multiprocessors = multiprocessors;
  return target;
}

// A graph as a GPU gets it, with fewer multiprocessors, so that the sizes of tests are worth a kernel.
class Attention {
 public:
  explicit Attention(std::string_view text, int multiprocessors = 1,
                     NumericsBudget numerics = NumericsBudget::Default)
      : target_(gpu_target(multiprocessors)) {
    register_ops();
    source_ = parse(text);
    Journal journal(numerics);
    const TargetContext context{.target = target_, .numerics = numerics};
    for (const Pass& pass : target_pipeline(context))
      pass.run(*source_, journal);
    graph_ = lowering::lower_graph(*source_);
    fusion::inline_stages(graph_, target_, numerics);
    grouping_ = fusion::group_nodes(graph_.nodes, graph_.buffers, graph_.kept(), target_, numerics);
    for (const lowering::Group& group : grouping_.groups)
      if (group.pattern == lowering::Pattern::FusedAttention)
        add(group);
  }

  bool is_fused() const { return !stages_.empty(); }
  // Why it is not.
  std::string obstacle() const {
    for (const fusion::Missed& missed : grouping_.missed)
      if (missed.reason.find("another kernel") == std::string::npos)
        return missed.reason;
    return "";
  }
  size_t count_groups() const { return grouping_.groups.size(); }

  loops::Kernel scheduled() const {
    return schedule::cuda::schedule_kernel(stages_, group_, outputs_, graph_.buffers, {target_, 1});
  }
  loops::Kernel in_tiles(const fusion::AttentionTile& tile) const {
    loops::Kernel kernel = schedule::start_kernel("kernel", stages_, outputs_, graph_.buffers);
    schedule::cuda::fuse_attention(kernel, stages_, static_cast<size_t>(group_.rows), outputs_, tile);
    return kernel;
  }
  loops::Kernel unscheduled() const {
    return schedule::unscheduled_nest("kernel", stages_, group_, outputs_, graph_.buffers, target_);
  }

 private:
  void add(const lowering::Group& group) {
    group_ = group;
    std::set<lowering::BufferId> needed = graph_.kept();
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (std::ranges::find(group.nodes, i) == group.nodes.end())
        needed.insert(graph_.nodes[i].reads.begin(), graph_.nodes[i].reads.end());
    for (const size_t i : group.nodes) {
      stages_.push_back(*graph_.nodes[i].stage);
      for (const lowering::BufferId written : graph_.nodes[i].writes)
        if (needed.contains(written))
          outputs_.insert(graph_.buffers[written].name());
    }
  }

  Target target_;
  std::unique_ptr<Graph> source_;
  lowering::KernelGraph graph_;
  fusion::Grouping grouping_;
  lowering::Group group_;
  std::vector<lowering::Stage> stages_;
  std::set<std::string> outputs_;
};

// Of so many heads, queries, keys and elements of a row.
inline std::string attention_of(std::string_view dtype, int64_t heads, int64_t queries, int64_t keys,
                                int64_t size, std::string_view options = "scale=0.25") {
  return fmt::format(R"(graph g(%q: {0}[1,{1},{2},{4}], %k: {0}[1,{1},{3},{4}], %v: {0}[1,{1},{3},{4}]) {{
    %0 = attention(%q, %k, %v, {5})
    return %0
  }})",
                     dtype, heads, queries, keys, size, options);
}

}  // namespace tenon
