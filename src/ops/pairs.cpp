#include "ops/pairs.h"

#include <algorithm>
#include <bit>

#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {

using loops::Scalar;

namespace {

constexpr int64_t kNumbers = 2;  // in a word

static_assert(std::endian::native == std::endian::little);

namespace pairs_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.rank() == 0)
    throw operand_error(n, "a scalar has no numbers side by side");
  std::vector<Dim> dims = x.shape().dims();
  const std::optional<Dim> count = divide_exactly(dims.back(), kNumbers);
  if (!count)
    throw operand_error(n, "the last dimension must be even");
  dims.back() = *count;
  return {Type::tensor(DType::I32, dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  Extents extents = x.extents();
  extents.back() /= kNumbers;
  Tensor y(DType::I32, extents);
  std::ranges::copy(x.bytes(), y.mutable_bytes().begin());
  return {y};
}

}  // namespace pairs_op

namespace matmul_op {

Types infer(const Node& n) {
  const Value a = n.in("a"), b = n.in("b");
  if (a.rank() == 0 || b.rank() != 2)
    throw operand_error(n, "a needs rows, and b is one matrix");
  if (provably_different(a.dim(-1), b.dim(0)))
    throw operand_error(n, "inner dimensions differ");
  std::vector<Dim> dims = a.shape().dims();
  dims.back() = b.dim(1);
  return {Type::tensor(DType::F32, dims)};
}

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

void lower(LowerContext& c) {
  const Value a = c.node().in("a"), b = c.node().in("b"), y = c.node().result();
  c.define(c.reduce(
      y.shape().dims(), {a.dim(-1)}, "+", Scalar::zero(DType::F32), [&](const Index& at, const Index& over) {
        Index of_a = at;
        of_a.back() = over[0];
        return Scalar::apply(
            loops::Function::DotPairs,
            {LowerContext::require_equal(a.dim(-1), b.dim(0), c.in(a, of_a)), c.in(b, {over[0], at.back()})});
      }));
}

}  // namespace matmul_op

}  // namespace

const Family& pair_ops() {
  static const Family ops = {
      {.name = "pairs",
       .doc = "two numbers side by side as one integer of 32 bits, the first as its lower half",
       .category = Category::Shape,
       .operands = {{"x", "bf16"}},
       .results = {{"y", "i32"}},
       .traits = {.reshapes = true},
       .infer = pairs_op::infer,
       .eval = pairs_op::eval},
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

Value pairs(Value x) { return x.graph().create("pairs", {{"x", x}})->result(); }

Value matmul_pairs(Value a, Value b) {
  return a.graph().create("matmul_pairs", {{"a", a}, {"b", b}})->result();
}

}  // namespace tenon
