#include <array>
#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

Datum matmul(const Tensor& a, const Tensor& b, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%a: {}, %b: {}) {{ %y = matmul(%a, %b{}) return %y }}", type_of(a),
                              type_of(b), attributes),
                  {a, b})[0];
}

std::string type(std::string_view a, std::string_view b, std::string_view attributes = "") {
  return output_type(
      fmt::format("graph(%a: f32{}, %b: f32{}) {{ %y = matmul(%a, %b{}) return %y }}", a, b, attributes));
}

TEST(Matmul, VectorsAreRowsOnTheLeftAndColumnsOnTheRight) {
  const Tensor m = f32({2, 2}, {1, 2, 3, 4}), v = f32({2}, {1, 10});
  expect_tensor(matmul(m, v), f32({2}, {21, 43}));
  expect_tensor(matmul(v, m), f32({2}, {31, 42}));
  expect_tensor(matmul(v, v), f32({}, {101}));
}

TEST(Matmul, TransposesEitherSide) {
  const Tensor a = f32({3, 2}, {1, 4, 2, 5, 3, 6}), b = f32({2, 3}, {1, 0, 1, 0, 1, 1});
  expect_tensor(matmul(a, b, ", transpose_a=true, transpose_b=true"), f32({2, 2}, {4, 5, 10, 11}));
}

TEST(Matmul, StacksBroadcast) {
  const Tensor a = f32({2, 1, 1, 2}, {1, 2, 3, 4}), b = f32({3, 2, 1}, {1, 0, 0, 1, 1, 1});
  expect_tensor(matmul(a, b), f32({2, 3, 1, 1}, {1, 2, 3, 3, 4, 7}));
}

TEST(Matmul, OfNothingIsZero) {
  expect_tensor(matmul(f32({2, 0}, {}), f32({0, 1}, {})), f32({2, 1}, {0, 0}));
  expect_tensor(matmul(f32({0, 2}, {}), f32({2, 3}, {1, 2, 3, 4, 5, 6})), f32({0, 3}, {}));
}

TEST(Matmul, IntegersWrapAround) {
  expect_tensor(matmul(tensor(DType::I8, {1, 2}, {100, 100}), tensor(DType::I8, {2, 1}, {1, 1})),
                tensor(DType::I8, {1, 1}, {-56}));
  const double large = 4294967296.0;  // 2^32: its square is 0 in 64 bits
  expect_tensor(matmul(i64({1}, {large}), i64({1}, {large})), i64({}, {0}));
}

TEST(Matmul, SumsInDoubleAndBeyondOneBlock) {
  // In f32, 1e8 + 1 is 1e8 again. 300 columns and 70 products are more than one block of the loops.
  std::vector<double> a(70, 0), b(70 * 300, 1);
  a[0] = 1e8, a[68] = 1, a[69] = -1e8;
  expect_tensor(matmul(f32({1, 70}, a), f32({70, 300}, b)), f32({1, 300}, std::vector<double>(300, 1)));
}

// Small integers of either sign, so that sums are exact in any order.
Tensor numbers(const Extents& extents, int64_t seed) {
  std::vector<double> values(static_cast<size_t>(element_count(extents)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((static_cast<int64_t>(i) * 37 + seed) % 19 - 9);
  return f32(extents, values);
}

TEST(Matmul, IsTheSumOfProductsWhateverTheSizes) {
  for (const auto& [rows, inner, columns] :
       {std::array{1, 1, 1}, {3, 5, 7}, {2, 63, 255}, {5, 64, 256}, {3, 65, 257}, {7, 131, 519}}) {
    const Tensor a = numbers({rows, inner}, 3), b = numbers({inner, columns}, 5);
    const std::vector<double> x = widen<double>(a), y = widen<double>(b);
    std::vector<double> sums;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) {
        double sum = 0;
        for (int k = 0; k < inner; ++k)
          sum += x[static_cast<size_t>(i * inner + k)] * y[static_cast<size_t>(k * columns + j)];
        sums.push_back(sum);
      }
    expect_tensor(matmul(a, b), f32({rows, columns}, sums));
  }
}

TEST(Matmul, ZeroTimesInfinityIsNaN) {
  const double inf = std::numeric_limits<double>::infinity();
  expect_tensor(matmul(f32({1, 2}, {0, 1}), f32({2, 1}, {inf, 1})), f32({1, 1}, {std::nan("")}));
}

TEST(Matmul, InfersSymbolicShapes) {
  EXPECT_EQ(type("[b,n,64]", "[64,m]"), "f32[b,n,m]");
  EXPECT_EQ(type("[b,64,n]", "[b,m,64]", ", transpose_a=true, transpose_b=true"), "f32[b,n,m]");
  EXPECT_EQ(type("[n,k]", "[j]"), "f32[n]");  // k and j must turn out the same
  EXPECT_EQ(type("[*]", "[2,3]"), "f32[*]");
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  const auto refuse = [](std::string_view a, std::string_view b, std::string_view attributes,
                         const std::string& message) {
    expect_error<UserError>([&] { type(a, b, attributes); },
                            fmt::format("line 1, column {}: matmul: {}\n  a  %a: f32{}\n  b  %b: f32{}",
                                        32 + a.size() + b.size(), message, a, b));
  };
  refuse("[]", "[2,2]", "", "a scalar has no rows or columns");
  refuse("[2]", "[2,2]", ", transpose_a=true", "a vector cannot be transposed");
  refuse("[2,1,3]", "[3,3,1]", "", "the leading dimensions do not broadcast");
  expect_error<UserError>([] { type("[4,8]", "[2,8]"); },
                          "line 1, column 42: matmul: inner dimensions differ\n  a  %a: f32[4,8]\n  b  %b: "
                          "f32[2,8]\n  inner dimensions: 8 of a, 2 of b\n  hint: b looks transposed");
}

TEST(Matmul, ChecksShapesAgainWhenItRuns) {
  const auto run = [](const Tensor& a, const Tensor& b, std::string_view attributes) {
    return run_text(
        fmt::format("graph(%a: f32[*], %b: f32[*]) {{ %y = matmul(%a, %b{}) return %y }}", attributes),
        {a, b});
  };
  const Tensor v = f32({2}, {1, 2}), m = f32({3, 1}, {1, 2, 3});
  expect_error<UserError>([&] { run(v, m, ""); }, "node %y: matmul: the inner dimensions 2 and 3 differ");
  expect_error<UserError>([&] { run(v, m, ", transpose_a=true"); },
                          "node %y: matmul: f32[2] is no matrix to transpose");
  expect_error<UserError>([&] { run(f32({}, {1}), m, ""); }, "node %y: matmul: f32[] is no matrix");
}

}  // namespace
}  // namespace tenon
