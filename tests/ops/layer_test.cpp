#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(Linear, MultipliesByTheTransposedWeight) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6}), weight = f32({2, 3}, {1, 0, -1, 2, 2, 2}),
               bias = f32({2}, {10, 20});
  expect_tensor(
      run_text("graph(%x: f32[2,3], %w: f32[2,3], %b: f32[2]) { %y = linear(%x, %w, %b) return %y }",
               {x, weight, bias})[0],
      f32({2, 2}, {8, 32, 8, 50}));
  expect_tensor(run_text("graph(%x: f32[3], %w: f32[2,3]) { %y = linear(%x, %w) return %y }",
                         {f32({3}, {1, 2, 3}), weight})[0],
                f32({2}, {-2, 12}));
}

TEST(Linear, CopesWithEmptyTensors) {
  const std::string_view text =
      "graph(%x: f32[n,k], %w: f32[m,k], %b: f32[m]) { %y = linear(%x, %w, %b) return %y }";
  expect_tensor(run_text(text, {f32({0, 3}, {}), f32({2, 3}, {1, 2, 3, 4, 5, 6}), f32({2}, {1, 2})})[0],
                f32({0, 2}, {}));
  expect_tensor(run_text(text, {f32({1, 0}, {}), f32({2, 0}, {}), f32({2}, {1, 2})})[0], f32({1, 2}, {1, 2}));
  expect_tensor(run_text(text, {f32({1, 2}, {1, 2}), f32({0, 2}, {}), f32({0}, {})})[0], f32({1, 0}, {}));
}

TEST(Linear, InfersSymbolicShapes) {
  EXPECT_EQ(output_type("graph(%x: f32[batch,seq,8], %w: f32[4,8]) { %y = linear(%x, %w) return %y }"),
            "f32[batch,seq,4]");
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const auto refuses = [](std::string_view x, std::string_view w, std::string_view b,
                          std::string_view message) {
    expect_error<UserError>(
        [&] {
          parse_graph(fmt::format(
              "graph(%x: f32{0}, %w: f32{1}, %b: f32{2}) {{ %y = linear(%x, %w, %b) return %y }}", x, w, b));
        },
        fmt::format("line 1, column {}: linear: {}\n  x  %x: f32{}\n  weight  %w: f32{}\n  bias  %b: f32{}",
                    41 + x.size() + w.size() + b.size(), message, x, w, b));
  };
  refuses("[]", "[2,3]", "[2]", "x has no features: it is a scalar");
  refuses("[1,3]", "[3]", "[2]", "weight must be a matrix, [outputs, features]");
  refuses("[1,3]", "[2,3]", "[1,2]", "bias must be a vector, [outputs]");
  refuses("[1,4]", "[2,3]", "[2]", "x has 4 features, but weight is for 3");
  refuses("[1,2]", "[2,3]", "[2]", "x has 2 features, but weight is for 3; it looks transposed");
  refuses("[1,3]", "[2,3]", "[3]", "weight gives 2 outputs, but bias is for 3");
}

TEST(Linear, RefusesAtRunTimeWhatInferenceCouldNotSee) {
  const std::string_view text =
      "graph(%x: f32[n,k], %w: f32[a,b], %c: f32[d]) { %y = linear(%x, %w, %c) return %y }";
  expect_error<UserError>(
      [&] {
        run_text(text, {f32({1, 2}, {1, 2}), f32({1, 3}, {1, 2, 3}), f32({1}, {1})});
      },
      "node %y: linear: x of [1,2] does not fit weight of [1,3]");
  expect_error<UserError>(
      [&] {
        run_text(text, {f32({1, 2}, {1, 2}), f32({1, 2}, {1, 2}), f32({2}, {1, 2})});
      },
      "node %y: linear: bias of [2] does not fit weight of [1,2]");
}

}  // namespace
}  // namespace tenon
