#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Datum apply(std::string_view op, const Tensor& x, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x{}) return %y }}", type_of(x), op, attributes),
                  {x})[0];
}

TEST(Activation, FollowsItsFormula) {
  const auto at = [](std::string_view op, double x, std::string_view attributes = "") {
    return as_double(apply(op, tensor(DType::F64, {}, {x}), attributes).tensor());
  };
  EXPECT_NEAR(at("gelu", 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at("gelu", 1, ", approximate=\"tanh\""), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(at("silu", -1), -0.2689414213699951, 1e-15);
  EXPECT_NEAR(at("silu", 1, ", alpha=2.0"), 0.8807970779778823, 1e-15);
  EXPECT_NEAR(at("softplus", 0), std::log(2), 1e-15);
  EXPECT_NEAR(at("mish", 1), 0.8650983882673103, 1e-15);
  EXPECT_EQ(at("leaky_relu", -2, ", alpha=0.25"), -0.5);
  EXPECT_NEAR(at("elu", -1, ", alpha=2.0"), 2 * (std::exp(-1) - 1), 1e-15);
  EXPECT_NEAR(at("elu", -1, ", alpha=2.0, scale=3.0, input_scale=0.5"), 6 * (std::exp(-0.5) - 1), 1e-15);
  EXPECT_EQ(at("elu", 2, ", scale=3.0"), 6);
  EXPECT_EQ(at("hard_sigmoid", 1, ", alpha=0.25, beta=0.5"), 0.75);
  EXPECT_NEAR(at("hard_swish", 1), 2.0 / 3, 1e-15);
}

TEST(Activation, GoesToItsLimits) {
  const Tensor x = f32({4}, {1000, -1000, kInf, kNaN});
  expect_tensor(apply("softplus", x), f32({4}, {1000, 0, kInf, kNaN}));
  expect_tensor(apply("mish", x), f32({4}, {1000, -0.0, kInf, kNaN}));
  expect_tensor(apply("silu", x), f32({4}, {1000, -0.0, kInf, kNaN}));
  expect_tensor(apply("gelu", x), f32({4}, {1000, -0.0, kInf, kNaN}));
  expect_tensor(apply("elu", x), f32({4}, {1000, -1, kInf, kNaN}));
  expect_tensor(apply("hard_sigmoid", x), f32({4}, {1, 0, 1, kNaN}));
  expect_tensor(apply("hard_swish", x), f32({4}, {1000, -0.0, kInf, kNaN}));
  expect_tensor(apply("leaky_relu", f32({2}, {-0.0, kNaN})), f32({2}, {-0.0, kNaN}));
}

// Rounding sigmoid(x) before the product would give 0.1708984375.
TEST(Activation, RoundsOnceInNarrowTypes) {
  expect_tensor(apply("silu", tensor(DType::BF16, {}, {0.296875})), tensor(DType::BF16, {}, {0.169921875}));
}

TEST(Activation, RefusesAnUnknownApproximation) {
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[2]) { %y = gelu(%x, approximate=\"erf\") return %y }"); },
      "line 1, column 26: gelu: approximate is \"erf\", but must be none or tanh");
}

}  // namespace
}  // namespace tenon
