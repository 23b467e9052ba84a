#include "rewrite/region.h"

#include "ir/graph_text.h"
#include "rewrite/probe.h"

namespace tenon {
namespace {

// What the output may be computed of, the nearest first.
std::vector<std::string> cuts(std::string_view text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  std::vector<std::string> names;
  for (const UnaryRegion& region : regions_of(graph->outputs().front()))
    names.push_back(region.x.name());
  return names;
}

using Names = std::vector<std::string>;

TEST(UnaryRegion, EndsWhereOneValueDecidesAll) {
  EXPECT_EQ(cuts("graph g(%x: f32[2]) { %a = exp(%x) %b = tanh(%a) %y = mul(%a, %b) return %y }"),
            (Names{"a", "x"}));
}

TEST(UnaryRegion, TakesFixedValuesIn) {
  EXPECT_EQ(cuts("graph g(%x: f32[2]) { %c = constant(value=f32[2] {1, 2}) %d = exp(%c) %y = mul(%x, %d) "
                 "return %y }"),
            Names{"x"});
}

TEST(UnaryRegion, HasOneVariableOnly) {
  EXPECT_EQ(cuts("graph g(%x: f32[2], %z: f32[2]) { %y = mul(%x, %z) return %y }"), Names{});
}

TEST(UnaryRegion, StopsAtOtherOps) {
  EXPECT_EQ(cuts("graph g(%x: f32[2,2]) { %a = transpose(%x, permutation=[1, 0]) %y = exp(%a) return %y }"),
            Names{"a"});
  EXPECT_EQ(
      cuts("graph g(%x: f32[2]) { %a = cast(%x, to=i32) %b = cast(%a, to=f32) %y = exp(%b) return %y }"),
      Names{"b"});
}

TEST(UnaryRegion, RunsAlone) {
  const auto graph = parse_graph(
      "graph g(%x: f16[n]) { %c = constant(value=f16[] {2}) %w = cast(%x, to=f32) %n = cast(%w, to=f16) "
      "%y = mul(%n, %c) return %y }");
  const UnaryRegion region = regions_of(graph->outputs().front()).back();
  EXPECT_EQ(region.x, graph->input(0));
  const RegionRun own = run(region, tensor(DType::F16, {1}, {0.1}), {}, Precision::Own);
  expect_tensor(own.result, tensor(DType::F16, {1}, {0.199951171875}));
  const RegionRun exact = run(region, tensor(DType::F64, {1}, {0.1}), {}, Precision::Exact);
  expect_tensor(exact.result, tensor(DType::F64, {1}, {0.2}));
  EXPECT_EQ(exact.inner.size(), 2u);
}

}  // namespace
}  // namespace tenon
