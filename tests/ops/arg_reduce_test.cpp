#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

const double kNaN = std::nan("");

Data apply(std::string_view op, const Tensor& x, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x, {}) return %y }}", type_of(x), op, attributes),
                  {x});
}

TEST(ArgReduce, ChoosesTheFirstOrTheLastOfEquals) {
  const Tensor x = f32({2, 3}, {1, 3, 3, 2, 2, 5});
  expect_tensor(apply("arg_max", x, "axis=1")[0], i64({2}, {1, 2}));
  expect_tensor(apply("arg_max", x, "axis=1, last=true")[0], i64({2}, {2, 2}));
  expect_tensor(apply("arg_min", x, "axis=-1, last=true, keep_dims=true")[0], i64({2, 1}, {0, 1}));
  expect_tensor(apply("arg_min", x, "axis=0")[0], i64({3}, {0, 1, 0}));
}

TEST(ArgReduce, PrefersNaN) {
  const Tensor x = f32({4}, {1, kNaN, kNaN, 3});
  for (const char* op : {"arg_max", "arg_min"}) {
    expect_tensor(apply(op, x, "axis=0")[0], i64({}, {1}));
    expect_tensor(apply(op, x, "axis=0, last=true")[0], i64({}, {2}));
  }
}

TEST(ArgReduce, ComparesLargeIntegersExactly) {
  // As doubles they would be equal.
  const Tensor x = Tensor::of<int64_t>({(int64_t{1} << 60) + 1, int64_t{1} << 60});
  expect_tensor(apply("arg_min", x, "axis=0")[0], i64({}, {1}));
}

TEST(ArgReduce, HasNothingToChooseFromAnEmptyAxis) {
  expect_tensor(apply("arg_max", f32({0, 2}, {}), "axis=1")[0], i64({0}, {}));
  expect_error<UserError>(
      [] {
        apply("arg_max", f32({2, 0}, {}), "axis=1");
      },
      "node %y: arg_max: dimension 1 is 0, so there is nothing to choose from");
}

TEST(ArgReduce, InfersSymbolicShapes) {
  EXPECT_EQ(output_type("graph(%x: f32[n,4]) { %y = arg_max(%x, axis=-1) return %y }"), "i64[n]");
  EXPECT_EQ(output_type("graph(%x: f32[n,m]) { %y = arg_max(%x, axis=0, keep_dims=true) return %y }"),
            "i64[1,m]");
}

}  // namespace
}  // namespace tenon
