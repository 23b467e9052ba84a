#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

Data apply(std::string_view op, const Tensor& x, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x, {}) return %y }}", type_of(x), op, attributes),
                  {x});
}

TEST(Cumulative, RunsEitherWayWithOrWithoutTheElement) {
  const Tensor x = i64({3}, {2, 3, 5});
  expect_tensor(apply("cumulative_sum", x, "axis=0")[0], i64({3}, {2, 5, 10}));
  expect_tensor(apply("cumulative_sum", x, "axis=0, exclusive=true")[0], i64({3}, {0, 2, 5}));
  expect_tensor(apply("cumulative_sum", x, "axis=-1, reverse=true")[0], i64({3}, {10, 8, 5}));
  expect_tensor(apply("cumulative_prod", x, "axis=0, exclusive=true, reverse=true")[0], i64({3}, {15, 5, 1}));
}

TEST(Cumulative, RunsAlongTheAxisOnly) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  expect_tensor(apply("cumulative_sum", x, "axis=0")[0], f32({2, 2}, {1, 2, 4, 6}));
  expect_tensor(apply("cumulative_prod", x, "axis=1")[0], f32({2, 2}, {1, 2, 3, 12}));
  expect_tensor(apply("cumulative_sum", f32({0, 2}, {}), "axis=1")[0], f32({0, 2}, {}));
}

TEST(Cumulative, IntegersWrapAround) {
  expect_tensor(apply("cumulative_sum", tensor(DType::I8, {2}, {127, 1}), "axis=0")[0],
                tensor(DType::I8, {2}, {127, -128}));
}

TEST(Cumulative, TakesAnAxisThatTheModelComputes) {
  const std::string text = "graph(%x: f32[n,2], %a: i32[]) { %y = cumulative_sum(%x, axis=%a) return %y }";
  EXPECT_EQ(output_type(text), "f32[n,2]");
  const Tensor x = f32({1, 2}, {1, 2});
  expect_tensor(run_text(text, {x, tensor(DType::I32, {}, {-1})})[0], f32({1, 2}, {1, 3}));
  expect_error<UserError>(
      [&] {
        run_text(text, {x, tensor(DType::I32, {}, {2})});
      },
      "node %y: cumulative_sum: axis 2 is out of range for a tensor of rank 2");
}

TEST(Cumulative, FindsTheExtremesSoFar) {
  const auto apply = [](std::string_view op, const Tensor& x, std::string_view attributes) {
    return run_text(
        fmt::format("graph(%x: {}) {{ %y, %i = {}(%x, {}) return %y, %i }}", type_of(x), op, attributes),
        {x});
  };
  const Tensor x = f32({5}, {2, 5, 3, 5, 1});
  Data both = apply("cumulative_max", x, "axis=0");
  expect_tensor(both[0], f32({5}, {2, 5, 5, 5, 5}));
  expect_tensor(both[1], i64({5}, {0, 1, 1, 3, 3}));  // of equal ones the last
  both = apply("cumulative_min", x, "axis=-1");
  expect_tensor(both[0], f32({5}, {2, 2, 2, 2, 1}));
  expect_tensor(both[1], i64({5}, {0, 0, 0, 0, 4}));
  const double nan = std::nan("");
  both = apply("cumulative_min", f32({2, 2}, {1, 4, nan, 3}), "axis=0");
  expect_tensor(both[0], f32({2, 2}, {1, 4, nan, 3}));
  expect_tensor(both[1], i64({2, 2}, {0, 0, 1, 1}));
  expect_error<UserError>([&] { apply("cumulative_max", x, "axis=1"); },
                          "line 1, column 30: cumulative_max: axis 1 is out of range for a tensor of rank 1");
}

// As large as no exponential is.
TEST(Cumulative, SumsExponentialsWithoutComputingThem) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  expect_near(apply("cumulative_log_sum_exp", f32({3}, {1000, 1000, 0}), "axis=0")[0],
              f32({3}, {1000, 1000.6931, 1000.6931}), 1e-4);
  expect_tensor(apply("cumulative_log_sum_exp", f32({3}, {-inf, -inf, 2}), "axis=0")[0],
                f32({3}, {-inf, -inf, 2}));
  expect_tensor(apply("cumulative_log_sum_exp", f32({3}, {2, inf, 2}), "axis=0, reverse=true")[0],
                f32({3}, {inf, inf, 2}));
}

}  // namespace
}  // namespace tenon
