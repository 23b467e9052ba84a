// Sums whose formula looks like a product, but is none.
#include "compiler/expect_compiled.h"

namespace tenon {
namespace {

TEST(SumFormula, OfAProductAndSomethingElse) {
  for (const char* formula : {"%1 = add(%0, %z)", "%1 = add(%z, %0)", "%1 = sub(%0, %z)", "%1 = sub(%z, %0)",
                              "%3 = mul(%x, %z) %1 = add(%0, %3)"})
    for (const char* y : {"%y", "%w"}) {
      SCOPED_TRACE(std::string(formula) + ", " + y);
      expect_as_evaluated(*read(fmt::format(
          R"(graph g(%x: f32[40,64,1], %y: f32[1,64,48], %w: f32[1,64,48], %z: f32[64,1]) {{
          %0 = mul(%x, {})
          {}
          %2 = reduce_sum(%1, axes=[1])
          return %2
        }})",
          y, formula)));
    }
}

TEST(SumFormula, OfTwoProducts) {
  expect_as_evaluated(
      *read(R"(graph g(%x: f32[40,64,1], %w1: f32[1,64,48], %z: f32[40,64,1], %w2: f32[1,64,48]) {
      %0 = mul(%x, %w1)
      %1 = mul(%z, %w2)
      %2 = add(%0, %1)
      %3 = reduce_mean(%2, axes=[1])
      return %3
    })"));
}

// Lanes are added up once, and not for each element of the window.
TEST(SumFormula, OfWindowsOverChannelsForFewFilters) {
  for (const int channels : {16, 32, 48, 64, 80, 24})
    for (const int filters : {1, 3}) {
      const std::unique_ptr<Graph> graph = read(fmt::format(
          R"(graph g(%x: f32[2,8,9,11], %w1: f32[{0},8,1,1], %w2: f32[{1},{0},3,3]) {{
          %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
          %1 = conv(%0, %w2, strides=[1,2], dilations=[1,1], pads=[1,1,1,1])
          return %1
        }})",
          channels, filters));
      EXPECT_EQ(has(kernels_in(*graph), "t0[] += t1["), channels % 16 == 0 && channels <= 64)
          << kernels_in(*graph);
      expect_as_evaluated(*graph);
    }
}

}  // namespace
}  // namespace tenon
