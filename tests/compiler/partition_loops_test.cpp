// Loops whose lanes choose by where they stand: what is divided asks no more, and gives the same.
#include "compiler/expect_compiled.h"

namespace tenon {
namespace {

std::string joined(std::string_view dtype, std::string_view a, std::string_view b, std::string_view c) {
  return fmt::format(R"(graph(%a: {0}[7,{1}], %b: {0}[7,{2}], %c: {0}[7,{3}]) {{
    %0 = concat([%a, %b, %c], axis=1)
    return %0
  }})",
                     dtype, a, b, c);
}

std::string padded(int64_t before, int64_t after) {
  return fmt::format(R"(graph(%x: f32[7,200]) {{
    %p = constant(value=i64[2] {{{},{}}})
    %0 = pad(%x, %p, axes=[1])
    return %0
  }})",
                     before, after);
}

TEST(DivideLoops, JoinedTensorsAreCopiedOneByOne) {
  const std::string kernel = kernels_in(*read(joined("f32", "64", "100", "70")));
  EXPECT_FALSE(has(kernel, "select")) << kernel;
  EXPECT_TRUE(has(kernel, "for r1 in 0..64 vector")) << kernel;
  EXPECT_TRUE(has(kernel, "for r1 in 64..164 vector")) << kernel;
  EXPECT_TRUE(has(kernel, "for r1 in 164..234 vector")) << kernel;
}

TEST(DivideLoops, PartsThatFillNoVectorStayTogether) {
  EXPECT_TRUE(has(kernels_in(*read(joined("f32", "2", "1", "3"))), "for r1 in 0..6 vector"));
  const std::string kernel = kernels_in(*read(joined("f32", "64", "2", "70")));
  EXPECT_TRUE(has(kernel, "for r1 in 0..64 vector")) << kernel;
  EXPECT_TRUE(has(kernel, "for r1 in 64..136 vector")) << kernel;
  EXPECT_TRUE(has(kernel, "select(r1 < index(66)")) << kernel;
}

TEST(DivideLoops, WideBordersAreFilledByThemselves) {
  EXPECT_FALSE(has(kernels_in(*read(padded(90, 80))), "select"));
  EXPECT_TRUE(has(kernels_in(*read(padded(1, 1))), "for r1 in 0..202 vector"));
}

TEST(DivideLoops, SizesThatAreNotKnownStay) {
  EXPECT_TRUE(has(kernels_in(*read(joined("f32", "n", "100", "70"))), "select"));
}

TEST(DivideLoops, GiveWhatTheEvaluatorDoes) {
  for (const char* dtype : {"f32", "u8", "f16", "i64"})
    for (const auto& [a, b, c] : {std::tuple{"64", "100", "70"},
                                  {"64", "2", "70"},
                                  {"1", "300", "1"},
                                  {"3", "1", "2"},
                                  {"0", "65", "129"},
                                  {"150", "0", "63"}})
      expect_as_evaluated(*read(joined(dtype, a, b, c)));
  for (const auto& [before, after] : {std::pair{90, 80}, {1, 1}, {100, 0}, {-40, 70}, {-1, -1}})
    expect_as_evaluated(*read(padded(before, after)));
}

TEST(DivideLoops, OfFormulasThatGoOn) {
  expect_as_evaluated(*read(R"(graph(%a: f32[5,33], %b: f32[5,64], %s: f32[97]) {
    %0 = concat([%a, %b], axis=1)
    %1 = mul(%0, %s)
    %2 = relu(%1)
    %3 = concat([%2, %a], axis=1)
    return %2, %3
  })"));
}

}  // namespace
}  // namespace tenon
