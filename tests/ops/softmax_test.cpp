#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Data apply(std::string_view op, const Tensor& x, int64_t axis = -1) {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x, axis={}) return %y }}", type_of(x), op, axis),
                  {x});
}

TEST(Softmax, SumsToOneAlongTheAxis) {
  const Tensor x = f32({2, 2}, {0, 0, 0, std::log(3)});
  expect_near(apply("softmax", x, 1)[0], f32({2, 2}, {0.5, 0.5, 0.25, 0.75}), 1e-7);
  expect_near(apply("softmax", x, -2)[0], f32({2, 2}, {0.5, 0.25, 0.5, 0.75}), 1e-7);
  expect_near(apply("log_softmax", x, 1)[0],
              f32({2, 2}, {std::log(0.5), std::log(0.5), std::log(0.25), std::log(0.75)}), 1e-6);
}

TEST(Softmax, DoesNotOverflow) {
  expect_tensor(apply("softmax", f32({2}, {1e4, 1e4}))[0], f32({2}, {0.5, 0.5}));
  expect_tensor(apply("log_softmax", f32({2}, {0, -1e30}))[0], f32({2}, {0, -1e30}));
}

TEST(Softmax, MasksWithMinusInfinity) {
  expect_tensor(apply("softmax", f32({3}, {1, -kInf, 1}))[0], f32({3}, {0.5, 0, 0.5}));
  expect_tensor(apply("softmax", f32({2, 2}, {-kInf, -kInf, kNaN, 1}))[0],
                f32({2, 2}, {kNaN, kNaN, kNaN, kNaN}));
}

TEST(Softmax, OfNothingIsNothingHoweverLongALaneWouldBe) {
  const Tensor nothing(DType::F32, {0, int64_t{1} << 61});
  for (const char* op : {"softmax", "log_softmax", "hardmax"})
    EXPECT_EQ(apply(op, nothing)[0].tensor().extents(), nothing.extents());
}

TEST(Softmax, RoundsEachStepOfSmallFloats) {
  // exp(-6) is too small to move a sum of 1 in bf16, though two of them are not: 1 / 1.005 would be 0.996.
  const Datum y = apply("softmax", tensor(DType::BF16, {3}, {0, -6, -6}))[0];
  EXPECT_EQ(widen<double>(y.tensor())[0], 1);
  // Counting in bf16 ends at 256, but halves are summed first.
  expect_tensor(apply("softmax", tensor(DType::BF16, {1024}, std::vector<double>(1024, 3)))[0],
                tensor(DType::BF16, {1024}, std::vector<double>(1024, 1.0 / 1024)));
}

TEST(Softmax, OfNothingIsNothing) {
  expect_tensor(apply("softmax", f32({2, 0}, {}), 1)[0], f32({2, 0}, {}));
  expect_tensor(apply("hardmax", f32({0, 3}, {}), 0)[0], f32({0, 3}, {}));
}

TEST(Softmax, HardmaxChoosesTheFirstOfEquals) {
  expect_tensor(apply("hardmax", f32({2, 3}, {1, 3, 3, 5, kNaN, 7}))[0], f32({2, 3}, {0, 1, 0, 0, 1, 0}));
}

TEST(Softmax, RefusesAnAxisThatIsNotThere) {
  expect_error<UserError>([] { parse_graph("graph(%x: f32[n]) { %y = softmax(%x, axis=1) return %y }"); },
                          "line 1, column 26: softmax: axis 1 is out of range for a tensor of rank 1");
  EXPECT_EQ(output_type("graph(%x: f32[*]) { %y = softmax(%x, axis=1) return %y }"), "f32[*]");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[*]) { %y = softmax(%x, axis=1) return %y }", {f32({2}, {1, 2})});
      },
      "node %y: softmax: axis 1 is out of range for a tensor of rank 1");
}

}  // namespace
}  // namespace tenon
