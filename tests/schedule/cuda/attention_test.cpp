// Fused attention with online softmax, interpreted, against the stages that nobody scheduled.
#include "schedule/cuda/attention.h"

#include "passes/target_pipeline.h"
#include "schedule/cuda/one_kernel.h"
#include "schedule/start_kernel.h"

namespace tenon {
namespace {

using fusion::AttentionTile;
using loops::Kernel;
using lowering::BufferId;
using lowering::KernelNode;
using lowering::Pattern;
using lowering::Stage;

Target gpu_target(int multiprocessors) {
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
      if (group.pattern == Pattern::FusedAttention)
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

  Kernel scheduled() const {
    return schedule::cuda::schedule_kernel(stages_, group_, outputs_, graph_.buffers, {target_, 1});
  }
  Kernel in_tiles(const AttentionTile& tile) const {
    Kernel kernel = schedule::start_kernel("kernel", stages_, outputs_, graph_.buffers);
    schedule::cuda::fuse_attention(kernel, stages_, static_cast<size_t>(group_.rows), outputs_, tile);
    return kernel;
  }
  Kernel unscheduled() const {
    return schedule::unscheduled_nest("kernel", stages_, group_, outputs_, graph_.buffers, target_);
  }

 private:
  void add(const lowering::Group& group) {
    group_ = group;
    std::set<BufferId> needed = graph_.kept();
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      if (std::ranges::find(group.nodes, i) == group.nodes.end())
        needed.insert(graph_.nodes[i].reads.begin(), graph_.nodes[i].reads.end());
    for (const size_t i : group.nodes) {
      stages_.push_back(*graph_.nodes[i].stage);
      for (const BufferId written : graph_.nodes[i].writes)
        if (needed.contains(written))
          outputs_.insert(graph_.buffers[written].name());
    }
  }

  Target target_;
  std::unique_ptr<Graph> source_;
  lowering::KernelGraph graph_;
  fusion::Grouping grouping_;
  lowering::Group group_;
  std::vector<Stage> stages_;
  std::set<std::string> outputs_;
};

void expect_close(const Kernel& scheduled, const Kernel& unscheduled, const Sizes& sizes, double tolerance) {
  EXPECT_EQ(loops::check(scheduled), std::vector<std::string>{});
  const std::vector<Tensor> inputs = random_inputs(scheduled, sizes);
  const std::vector<Tensor> got = loops::interpret(scheduled, inputs, sizes),
                            wanted = loops::interpret(unscheduled, inputs, sizes);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].extents(), wanted[i].extents());
    const std::vector<double> ours = widen<double>(got[i]), theirs = widen<double>(wanted[i]);
    for (size_t j = 0; j < ours.size(); ++j) {
      if (std::isnan(theirs[j]))
        ASSERT_TRUE(std::isnan(ours[j])) << "element " << j << "\n" << print(scheduled);
      else
        ASSERT_NEAR(ours[j], theirs[j], tolerance) << "element " << j << "\n" << print(scheduled);
    }
  }
}

// In the tiles that are chosen for it, and in these.
void expect_same(const Attention& attention, const Sizes& sizes = {}, double tolerance = 1e-5,
                 const std::vector<AttentionTile>& tiles = {}) {
  ASSERT_TRUE(attention.is_fused()) << attention.obstacle();
  const Kernel unscheduled = attention.unscheduled();
  expect_close(attention.scheduled(), unscheduled, sizes, tolerance);
  for (const AttentionTile& tile : tiles)
    expect_close(attention.in_tiles(tile), unscheduled, sizes, tolerance);
}

// Of so many heads, queries, keys and elements of a row.
std::string attention_of(std::string_view dtype, int64_t heads, int64_t queries, int64_t keys, int64_t size,
                         std::string_view options = "scale=0.25") {
  return fmt::format(R"(graph g(%q: {0}[1,{1},{2},{4}], %k: {0}[1,{1},{3},{4}], %v: {0}[1,{1},{3},{4}]) {{
    %0 = attention(%q, %k, %v, {5})
    return %0
  }})",
                     dtype, heads, queries, keys, size, options);
}

const AttentionTile kNarrow{.on_tensor_cores = false, .warps = 2, .thread_rows = 2, .keys = 32},
    kWide{.on_tensor_cores = false, .warps = 2, .thread_rows = 4, .keys = 64},
    kTwoWarps{.on_tensor_cores = true, .warps = 2, .thread_rows = 2, .keys = 32};

TEST(FusedAttentionOnGpu, WholeTiles) {
  expect_same(Attention(attention_of("f32", 2, 16, 32, 8)), {}, 1e-5, {kNarrow});
}

TEST(FusedAttentionOnGpu, OddLengths) {
  expect_same(Attention(attention_of("f32", 2, 9, 37, 12)), {}, 1e-5, {kNarrow, kWide});
}

TEST(FusedAttentionOnGpu, HeadSizes) {
  for (const int64_t size : {32, 64, 80, 128})
    expect_same(Attention(attention_of("f32", 1, 8, 17, size)));
}

TEST(FusedAttentionOnGpu, HalfPrecision) {
  for (const std::string_view dtype : {"f16", "bf16"})
    expect_same(Attention(attention_of(dtype, 1, 18, 40, 20)), {}, dtype == "f16" ? 3e-3 : 2e-2);
  expect_same(Attention(attention_of("f16", 1, 10, 35, 40)), {}, 3e-3, {kTwoWarps});
}

}  // namespace
}  // namespace tenon
