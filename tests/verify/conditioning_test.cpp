#include "verify/conditioning.h"

#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(Nudged, FloatsMoveByAStep) {
  std::mt19937_64 random(0);
  const std::vector<double> was = {1.5, -0.1, 0, INFINITY};
  const std::vector<double> is = widen<double>(nudged(f32({4}, was), random).tensor());
  for (size_t i : {0, 1}) {
    EXPECT_NE(is[i], static_cast<float>(was[i]));
    EXPECT_NEAR(is[i], was[i], 2 * std::fabs(was[i]) * 0x1p-23);
  }
  EXPECT_EQ(is[2], 0);
  EXPECT_EQ(is[3], INFINITY);
}

TEST(Nudged, WhatIsExactStays) {
  std::mt19937_64 random(0);
  for (const Tensor& exact : {f32({3}, {1, -2, 4096}), i64({2}, {7, 8}), tensor(DType::F8E4M3FN, {1}, {1.5})})
    EXPECT_TRUE(identical(nudged(exact, random).tensor(), exact));
  // So large that they are integers only because floats are so far apart there.
  const Tensor large = f32({2}, {-1e9, 0});
  EXPECT_FALSE(identical(nudged(large, random).tensor(), large));
}

TEST(RunNudged, MovesWhatIsComputedOfInputs) {
  const auto graph = parse_graph(R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[] {0.3}) %0 = exp(%c) %1 = mul(%a, %c) return %0, %1 })");
  const Data inputs = {f32({2}, {0.7, 2})}, outputs = evaluate(*graph, inputs);
  const std::vector<Data> runs = run_nudged(*graph, inputs);
  ASSERT_EQ(runs.size(), static_cast<size_t>(kNudgedRuns));
  for (const Data& run : runs) {
    EXPECT_TRUE(identical(run[0].tensor(), outputs[0].tensor()));
    EXPECT_FALSE(identical(run[1].tensor(), outputs[1].tensor()));
  }
}

TEST(RunNudged, NotWhatIsDrawn) {
  const auto graph =
      parse_graph("graph g(%a: f32[2]) { %s = shape(%a) %0 = random_normal(%s, dtype=f32) return %0 }");
  EXPECT_TRUE(run_nudged(*graph, {f32({2}, {1, 2})}).empty());
}

// Forty elements of 1, but for those at the places given, which are off by `by`.
Datum off_at(const std::vector<size_t>& places, double by) {
  std::vector<double> numbers(40, 1);
  for (size_t place : places)
    numbers[place] += by;
  return f32({40}, numbers);
}

Explanation explain_with(const Datum& actual, const std::vector<Datum>& nudged) {
  return explain(actual, off_at({}, 0), nudged, 1e-4);
}

TEST(Explain, OnlyWhatAlwaysMovesMayBeOff) {
  const std::vector<Datum> runs(4, off_at({3, 4, 5}, 0.5));
  EXPECT_EQ(explain_with(off_at({3, 5}, 0.7), runs), Explanation::Rounding);
  EXPECT_EQ(explain_with(off_at({3, 6}, 0.5), runs), Explanation::None);
  EXPECT_EQ(explain_with(off_at({3}, 5), runs), Explanation::None);
}

TEST(Explain, WhatMovesByChanceMayBeElsewhere) {
  const std::vector<Datum> runs = {off_at({1}, 0.1), off_at({2}, 0.1), off_at({}, 0), off_at({9}, 0.1)};
  EXPECT_EQ(explain_with(off_at({7, 8}, 0.1), runs), Explanation::Rounding);
  EXPECT_EQ(explain_with(off_at({10, 11, 12, 13, 14}, 0.1), runs), Explanation::None);
}

TEST(Explain, WhereNothingMovesNothingMayBeOff) {
  EXPECT_EQ(explain_with(off_at({7}, 0.1), std::vector<Datum>(4, off_at({}, 0))), Explanation::None);
  EXPECT_EQ(explain_with(off_at({7}, 0.1), {}), Explanation::None);
}

TEST(Explain, WhereMostMovesNothingIsProved) {
  std::vector<size_t> most(30);
  for (size_t i = 0; i < most.size(); ++i)
    most[i] = i;
  EXPECT_EQ(explain_with(off_at({7}, 0.1), std::vector<Datum>(4, off_at(most, 0.1))), Explanation::Unsteady);
}

TEST(Explain, AnotherTypeIsNeverExplained) {
  EXPECT_EQ(explain_with(f32({39}, std::vector<double>(39, 1)), std::vector<Datum>(4, off_at({3}, 1))),
            Explanation::None);
}

}  // namespace
}  // namespace tenon
