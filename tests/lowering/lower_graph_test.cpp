// What nodes become: stages that can be fused, views of the same elements, nests, and calls of the host.
#include "lowering/lower_graph.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

// A word for each node.
std::vector<std::string> kinds_in(std::string_view text) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(text);
  const KernelGraph lowered = lowering::lower_graph(*graph);
  std::vector<std::string> kinds;
  for (const KernelNode& node : lowered.nodes) {
    constexpr std::string_view kKinds[] = {"stage", "nest", "host", "view"};
    kinds.emplace_back(node.stage && node.stage->definition.reduces()
                           ? "reduction"
                           : kKinds[static_cast<size_t>(node.kind)]);
  }
  return kinds;
}

using Kinds = std::vector<std::string>;

// A sum has a stage of its own, apart from what its result is converted to.
TEST(LowerGraph, MakesStagesOfFormulas) {
  EXPECT_EQ(kinds_in(R"(graph g(%x: f32[n,4], %y: f32[4,5]) {
      %0 = relu(%x)
      %1 = matmul(%0, %y)
      return %1
    })"),
            (Kinds{"stage", "reduction", "stage"}));
}

TEST(LowerGraph, LeavesElementsWhereOnlyTheirShapeChanges) {
  EXPECT_EQ(kinds_in("graph g(%x: f32[6,4]) { %0 = unsqueeze(%x, axes=[0]) return %0 }"), Kinds{"view"});
  EXPECT_EQ(kinds_in("graph g(%x: f32[6,4]) { %0 = transpose(%x, permutation=[1,0]) return %0 }"),
            Kinds{"stage"})
      << "elements move";
}

TEST(LowerGraph, LeavesToTheHostWhatHasNoFormula) {
  EXPECT_EQ(kinds_in("graph g(%x: f32[6]) { %0 = nonzero(%x) return %0 }"), Kinds{"host"});
}

}  // namespace
}  // namespace tenon
