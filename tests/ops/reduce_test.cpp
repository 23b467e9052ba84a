#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Data reduce(std::string_view op, const Tensor& x, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x, {}) return %y }}", type_of(x), op, attributes),
                  {x});
}

TEST(Reduce, DropsOrKeepsTheReducedDimensions) {
  const Tensor x = f32({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_tensor(reduce("reduce_sum", x, "axes=[1]")[0], f32({2}, {6, 15}));
  expect_tensor(reduce("reduce_sum", x, "axes=[0], keep_dims=true")[0], f32({1, 3}, {5, 7, 9}));
  expect_tensor(reduce("reduce_max", x, "axes=[-1, 0]")[0], f32({}, {6}));
  expect_tensor(reduce("reduce_sum", x, "axes=[]")[0], x);
}

TEST(Reduce, OfNothingIsTheNeutralElement) {
  const Tensor none = f32({2, 0}, {});
  expect_tensor(reduce("reduce_sum", none, "axes=[1]")[0], f32({2}, {0, 0}));
  expect_tensor(reduce("reduce_prod", none, "axes=[1]")[0], f32({2}, {1, 1}));
  expect_tensor(reduce("reduce_max", none, "axes=[1]")[0], f32({2}, {-kInf, -kInf}));
  expect_tensor(reduce("reduce_mean", none, "axes=[1]")[0], f32({2}, {kNaN, kNaN}));
  expect_tensor(reduce("reduce_min", tensor(DType::I8, {0}, {}), "axes=[0]")[0],
                tensor(DType::I8, {}, {127}));
  expect_tensor(reduce("reduce_max", tensor(DType::I8, {0}, {}), "axes=[0]")[0],
                tensor(DType::I8, {}, {-128}));
}

TEST(Reduce, NaNStaysOnceMet) {
  expect_tensor(reduce("reduce_max", f32({2, 2}, {kNaN, 1, 1, kNaN}), "axes=[1]")[0], f32({2}, {kNaN, kNaN}));
  expect_tensor(reduce("reduce_min", f32({2, 2}, {kNaN, 1, 1, kNaN}), "axes=[1]")[0], f32({2}, {kNaN, kNaN}));
}

TEST(Reduce, SumsInDouble) {
  // In f32, 1e8 + 1 is 1e8 again.
  expect_tensor(reduce("reduce_sum", f32({3}, {1e8, 1, -1e8}), "axes=[0]")[0], f32({}, {1}));
}

TEST(Reduce, LogSumExpDoesNotOverflow) {
  expect_near(reduce("reduce_log_sum_exp", f32({2, 2}, {1e4, 1e4, -1e4, -1e4}), "axes=[1]")[0],
              f32({2}, {1e4 + std::log(2), -1e4 + std::log(2)}), 1e-3);
  expect_tensor(reduce("reduce_log_sum_exp", f32({4, 2}, {-kInf, -kInf, kInf, -kInf, 5, -kInf, kNaN, kInf}),
                       "axes=[1]")[0],
                f32({4}, {-kInf, kInf, 5, kNaN}));
  expect_tensor(reduce("reduce_log_sum_exp", f32({0}, {}), "axes=[0]")[0], f32({}, {-kInf}));
}

TEST(Reduce, FollowsShapeArithmetic) {
  const auto size = [](std::string_view op, std::string_view axes) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n,m]) {{
        %s = shape(%x)
        %r = {}(%s, axes={}, keep_dims=true)
        %zero = constant(value=f32[1] {{0}})
        %y = broadcast(%zero, %r)
        return %y
      }})",
                                   op, axes));
  };
  EXPECT_EQ(size("reduce_prod", "[0]"), "f32[m*n]");
  EXPECT_EQ(size("reduce_sum", "[0]"), "f32[m+n]");
  EXPECT_EQ(size("reduce_max", "[0]"), "f32[max(m,n)]");
  EXPECT_EQ(size("reduce_prod", "[]"), "f32[n,m]");
}

TEST(Reduce, InfersSymbolicShapes) {
  EXPECT_EQ(output_type("graph(%x: f32[n,4,m]) { %y = reduce_sum(%x, axes=[1]) return %y }"), "f32[n,m]");
  EXPECT_EQ(output_type("graph(%x: f32[n,4,m]) { %y = reduce_sum(%x, axes=[-1], keep_dims=true) return %y }"),
            "f32[n,4,1]");
}

TEST(Reduce, TakesAxesThatTheModelComputes) {
  const std::string text = "graph(%x: f32[2,3], %a: i64[1]) { %y = reduce_sum(%x, axes=%a) return %y }";
  EXPECT_EQ(output_type(text), "f32[*]");
  expect_tensor(run_text(text, {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({1}, {1})})[0], f32({2}, {6, 15}));
  // Known after all: they become the attribute.
  EXPECT_EQ(
      output_type(
          "graph(%x: f32[2,3]) { %a = constant(value=i64[1] {1}) %y = reduce_sum(%x, axes=%a) return %y }"),
      "f32[2]");
  // Not even a size that is known can be followed then.
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n], %a: i64[k]) {
      %s = shape(%x)
      %one = squeeze(%s, axes=[0])
      %y = reduce_sum(%one, axes=%a, keep_dims=true)
      return %y
    })"),
            "i64[]");
}

TEST(Reduce, RefusesAxesThatAreNotThere) {
  const auto refuse = [](std::string_view axes, const std::string& message) {
    expect_error<UserError>(
        [&] {
          parse_graph(fmt::format("graph(%x: f32[2,3]) {{ %y = reduce_sum(%x, axes={}) return %y }}", axes));
        },
        "line 1, column 28: reduce_sum: " + message);
  };
  refuse("[2]", "axis 2 is out of range for a tensor of rank 2");
  refuse("[1, -1]", "axis 1 is named twice");
}

}  // namespace
}  // namespace tenon
