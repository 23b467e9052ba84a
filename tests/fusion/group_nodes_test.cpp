// Which stages become one kernel, and why others do not, as text.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "fusion/fuse.h"
#include "ir/parse.h"
#include "lowering/lower_graph.h"
#include "ops/registry.h"
#include "target/named_targets.h"

namespace tenon {

using fusion::Grouping;
using lowering::Pattern;

namespace {

std::string_view name_of(Pattern pattern) {
  constexpr std::string_view kNames[] = {"map", "rows", "contract", "fused attention"};
  return kNames[static_cast<size_t>(pattern)];
}

// "contract of 2; missed: REASON": what each group is and how many stages it has, then why there are not
// fewer.
std::string groups_in(std::string_view text) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(text);
  lowering::KernelGraph lowered = lowering::lower_graph(*graph);
  const Target target = target_named("avx512");
  fusion::inline_stages(lowered, target);
  const Grouping grouping = fusion::group_nodes(lowered.nodes, lowered.buffers, lowered.kept(), target);
  std::vector<std::string> texts;
  for (const lowering::Group& group : grouping.groups)
    texts.push_back(fmt::format("{} of {}", name_of(group.pattern), group.nodes.size()));
  for (const fusion::Missed& missed : grouping.missed)
    texts.push_back("missed: " + missed.reason);
  return fmt::format("{}", fmt::join(texts, "; "));
}

TEST(GroupNodes, InlinesPointwiseProducers) {
  EXPECT_EQ(groups_in("graph g(%x: f32[n,40]) { %0 = relu(%x) %1 = exp(%0) %2 = tanh(%1) return %2 }"),
            "map of 1");
}

TEST(GroupNodes, KeepsAnEpilogueWithItsContraction) {
  EXPECT_EQ(groups_in(R"(graph g(%x: f32[64,64], %y: f32[64,96], %b: f32[96]) {
      %0 = matmul(%x, %y)
      %1 = add(%0, %b)
      %2 = relu(%1)
      return %2
    })"),
            "contract of 3");
}

TEST(GroupNodes, ComputesASoftmaxRowByRow) {
  EXPECT_EQ(groups_in("graph g(%x: f32[n,40]) { %0 = softmax(%x, axis=-1) return %0 }"), "rows of 4");
}

TEST(GroupNodes, DoesNotJoinReductionsOverDifferentAxes) {
  EXPECT_EQ(groups_in(R"(graph g(%x: f32[64,40]) {
      %0 = reduce_sum(%x, axes=[1])
      %1 = reduce_sum(%0, axes=[0])
      return %1
    })"),
            "rows of 1; rows of 2; missed: it reduces a different number of axes");
}

TEST(GroupNodes, DoesNotJoinTwoContractions) {
  EXPECT_EQ(groups_in(R"(graph g(%x: f32[64,64], %y: f32[64,96], %z: f32[96,64]) {
      %0 = matmul(%x, %y)
      %1 = matmul(%0, %z)
      return %1
    })"),
            "contract of 1; contract of 2; missed: both are reductions over different axes");
}

}  // namespace
}  // namespace tenon
