#include "verify/small_sizes.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

std::string inputs_of(std::string_view text) {
  std::vector<std::string> types;
  const std::unique_ptr<Graph> sized = with_small_sizes(*parse_graph(text));
  for (Value input : sized->inputs())
    types.push_back(fmt::format("{}", input.type()));
  return fmt::format("{}", fmt::join(types, ", "));
}

TEST(SmallSizes, AreAsSmallAsTheGraphRunsWith) {
  EXPECT_EQ(inputs_of("graph g(%a: f32[b,n]) { %0 = exp(%a) return %0 }"), "f32[3,3]");
  EXPECT_EQ(inputs_of(R"(graph g(%a: f32[b,n]) {
    %s = constant(value=i64[2] {-1, 8}) %0 = reshape(%a, %s) return %0 })"),
            "f32[8,8]");
}

TEST(SmallSizes, ABatchMayHaveToBeOne) {
  EXPECT_EQ(inputs_of(R"(graph g(%a: f32[b,n]) {
    %s = constant(value=i64[3] {1, 3, -1}) %0 = unsqueeze(%a, axes=[1]) %c = constant(value=f32[1,2,3] splat 1)
    %1 = concat([%0, %c], axis=1) return %1 })"),
            "f32[1,3]");
}

TEST(SmallSizes, OneMayBeTheSumOfOthers) {
  EXPECT_EQ(inputs_of(R"(graph g(%new: f32[b,s], %past: f32[b,p], %mask: f32[b,t]) {
    %0 = concat([%past, %new], axis=1) %1 = mul(%0, %mask) return %1 })"),
            "f32[8,8], f32[8,8], f32[8,16]");
}

TEST(SmallSizes, OneMayBeFixedElsewhere) {
  EXPECT_EQ(inputs_of(R"(graph g(%a: f32[b,n]) {
    %c = constant(value=f32[80] splat 1) %0 = mul(%a, %c) return %0 })"),
            "f32[8,80]");
}

}  // namespace
}  // namespace tenon
