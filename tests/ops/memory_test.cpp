#include "ir/graph_text.h"

namespace tenon {

namespace {

TEST(Memory, MovesNoElement) {
  const std::string text = R"(
    graph(%x: f32[n]) { %y = copy(%x) %z = to_device(%y, device="cuda") return %z })";
  expect_tensor(run_text(text, {f32({2}, {1, 2})})[0], f32({2}, {1, 2}));
  EXPECT_EQ(output_type(text), "f32[n]");
}

TEST(Memory, KeepsWhatIsKnown) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n,2], %y: f32[2*n]) {
      %s = shape(%x) %there = to_device(%s, device="cuda") %back = copy(%there) %z = reshape(%y, %back) return %z })"),
            "f32[n,2]");
}

TEST(Memory, KnowsItsDevices) {
  expect_error<UserError>(
      [] {
        register_ops();
        parse("graph(%x: f32[2]) { %y = to_device(%x, device=\"tpu\") return %y }");
      },
      "line 1, column 26: to_device: device must be cpu or cuda, but is tpu");
}

}  // namespace
}  // namespace tenon
