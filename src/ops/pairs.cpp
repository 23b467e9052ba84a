#include "ops/pairs.h"

#include <algorithm>
#include <bit>

#include "ops/lower.h"
#include "ops/vnni_pack.h"

namespace tenon {

namespace {

namespace matmul_op {

Types infer(const Node& n) { return {type_of_packed_product(n, DType::F32)}; }

double dot(int32_t a, int32_t b) {
  const auto low = [](int32_t word) {
    return double{std::bit_cast<float>(static_cast<uint32_t>(word) << 16)};
  };
  const auto high = [](int32_t word) {
    return double{std::bit_cast<float>(static_cast<uint32_t>(word) & 0xffff0000)};
  };
  return low(a) * low(b) + high(a) * high(b);
}

Data eval(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  const int64_t inner = b.extent(0), columns = b.extent(1);
  if (a.extents().back() != inner)
    throw user_error("matmul_pairs: rows of {} words, and columns of {}", a.extents().back(), inner);
  Extents extents = a.extents();
  extents.back() = columns;
  Tensor y(DType::F32, extents);
  const std::span<const int32_t> x = a.data<int32_t>(), w = b.data<int32_t>();
  const std::span<float> products = y.mutable_data<float>();
  const int64_t rows = inner == 0 ? 0 : a.count() / inner;
  std::ranges::fill(products, 0);
  std::vector<double> sums(static_cast<size_t>(columns));
  for (int64_t i = 0; i < rows; ++i) {
    std::ranges::fill(sums, 0);
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j)
        sums[static_cast<size_t>(j)] +=
            dot(x[static_cast<size_t>(i * inner + k)], w[static_cast<size_t>(k * columns + j)]);
    for (int64_t j = 0; j < columns; ++j)
      products[static_cast<size_t>(i * columns + j)] = static_cast<float>(sums[static_cast<size_t>(j)]);
  }
  return {y};
}

void lower(LowerContext& c) { lower_packed_product(c, loops::Function::DotBf16x2); }

}  // namespace matmul_op

}  // namespace

const Family& pair_ops() {
  static const Family ops = {
      {.name = "matmul_pairs",
       .doc = "the product of matrices of bf16, two to a word, in f32",
       .operands = {{"a", "i32"}, {"b", "i32"}},
       .results = {{"y", "f32"}},
       .infer = matmul_op::infer,
       .eval = matmul_op::eval,
       .lower = matmul_op::lower},
  };
  return ops;
}

Value matmul_pairs(Value a, Value b) {
  return a.graph().create("matmul_pairs", {{"a", a}, {"b", b}})->result();
}

}  // namespace tenon
