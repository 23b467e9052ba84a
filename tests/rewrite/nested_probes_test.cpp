#include "rewrite/nested_probes.h"

#include "ir/graph_text.h"
#include "ops/unary.h"
#include "rewrite/probe.h"

namespace tenon {
namespace {

constexpr const char* kChain =
    "graph g(%x: f32[n]) { %c = constant(value=f32[] {0.5}) %a = exp(%x) %b = cast(%a, to=f16) %d = "
    "cast(%b, to=f32) %e = mul(%d, %c) %f = tanh(%e) %h = add(%f, %e) %y = neg(%h) return %y }";

TEST(NestedProbes, GiveWhatEachRegionDoesAlone) {
  const auto graph = parse_graph(kChain);
  const std::vector<UnaryRegion> regions = regions_of(graph->outputs().front());
  ASSERT_EQ(regions.size(), 6u);
  for (const UnaryRegion& region : regions)
    for (double x : NestedProbes::kPoints) {
      const Tensor alone = run(region, tensor(DType::F64, {1}, {x}), {}, Precision::Exact).result;
      const std::optional<double> nested = region.probes->value_at(region.number, x);
      ASSERT_TRUE(nested.has_value());
      expect_tensor(tensor(DType::F64, {1}, {*nested}), alone);
    }
}

TEST(NestedProbes, RunOnceForAllRegionsOfARoot) {
  const auto graph = parse_graph(kChain);
  const std::vector<UnaryRegion> regions = regions_of(graph->outputs().front());
  for (const UnaryRegion& region : regions)
    EXPECT_EQ(region.probes, regions.front().probes);
}

TEST(NestedProbes, AreForElementwiseRegionsWithoutFixedValues) {
  const auto graph = parse_graph(
      "graph g(%x: f32[n,4]) { %w = constant(value=f32[4] {1, 2, 3, 4}) %a = mul(%x, %w) %b = exp(%a) "
      "%y = tanh(%b) return %y }");
  const std::vector<UnaryRegion> regions = regions_of(graph->outputs().front());
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_NE(regions[1].probes, nullptr);
  EXPECT_EQ(regions[2].probes, nullptr);
}

TEST(NestedProbes, KnowNothingOfOtherPoints) {
  const auto graph = parse_graph(kChain);
  const UnaryRegion region = regions_of(graph->outputs().front()).front();
  EXPECT_EQ(region.probes->value_at(region.number, 0.125), std::nullopt);
}

TEST(NestedProbes, TellFunctionsApart) {
  const auto graph = parse_graph(
      "graph g(%x: f32[n]) { %1 = constant(value=f32[] {1}) %0 = neg(%x) %2 = exp(%0) %3 = add(%1, %2) "
      "%y = div(%1, %3) return %y }");
  const UnaryRegion region = regions_of(graph->outputs().front()).back();
  const auto values = [](Value (*make)(Value)) {
    return values_at_telling_points([=](Value x, const std::vector<Value>&) { return make(x); });
  };
  EXPECT_TRUE(may_compute_elementwise(region, values(sigmoid)));
  EXPECT_FALSE(may_compute_elementwise(region, values(tanh)));
  EXPECT_FALSE(may_compute_elementwise(region, values(relu)));
}

// log(x) has a NaN below 0, which is on the way to what comes after: relu(exp(log(x))) is not told from x
// there.
TEST(NestedProbes, CompareNothingWhereNumbersAreNotFinite) {
  const auto graph = parse_graph("graph g(%x: f32[n]) { %0 = log(%x) %y = exp(%0) return %y }");
  const UnaryRegion region = regions_of(graph->outputs().front()).back();
  EXPECT_TRUE(may_compute_elementwise(
      region, values_at_telling_points([](Value x, const std::vector<Value>&) { return relu(x); })));
}

}  // namespace
}  // namespace tenon
