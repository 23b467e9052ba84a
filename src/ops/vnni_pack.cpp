#include "ops/vnni_pack.h"

#include <algorithm>
#include <bit>

#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {

using loops::Scalar;

namespace {

constexpr int64_t kBytes = 4;  // of a word

int64_t numbers_in_word(Value x) { return kBytes / info(x.dtype()).bytes; }

static_assert(std::endian::native == std::endian::little);

namespace words_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.rank() == 0)
    throw operand_error(n, "a scalar has no numbers side by side");
  std::vector<Dim> dims = x.shape().dims();
  const std::optional<Dim> count = divide_exactly(dims.back(), numbers_in_word(x));
  if (!count)
    throw operand_error(n, fmt::format("the last dimension must be a multiple of {}", numbers_in_word(x)));
  dims.back() = *count;
  return {Type::tensor(DType::I32, dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  Extents extents = x.extents();
  extents.back() /= kBytes / x.element_size();
  Tensor y(DType::I32, extents);
  std::ranges::copy(x.bytes(), y.mutable_bytes().begin());
  return {y};
}

}  // namespace words_op

namespace matmul_op {

Types infer(const Node& n) { return {type_of_packed_product(n, DType::I32)}; }

int32_t dot(int32_t a, int32_t b) {
  int32_t sum = 0;
  for (int i = 0; i < kBytes; ++i)
    sum += static_cast<uint8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  return sum;
}

Data eval(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  const int64_t inner = b.extent(0), columns = b.extent(1);
  if (a.extents().back() != inner)
    throw user_error("matmul_words: rows of {} words, and columns of {}", a.extents().back(), inner);
  Extents extents = a.extents();
  extents.back() = columns;
  Tensor y(DType::I32, extents);
  const std::span<const int32_t> x = a.data<int32_t>(), w = b.data<int32_t>();
  const std::span<int32_t> sums = y.mutable_data<int32_t>();
  std::ranges::fill(sums, 0);
  const int64_t rows = inner == 0 ? 0 : a.count() / inner;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j) {
        int32_t& sum = sums[static_cast<size_t>(i * columns + j)];
        const int64_t product =
            dot(x[static_cast<size_t>(i * inner + k)], w[static_cast<size_t>(k * columns + j)]);
        sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(product));
      }
  return {y};
}

void lower(LowerContext& c) { lower_packed_product(c, loops::Function::DotI8x4); }

}  // namespace matmul_op

}  // namespace

Type type_of_packed_product(const Node& n, DType dtype) {
  const Value a = n.in("a"), b = n.in("b");
  if (a.rank() == 0 || b.rank() != 2)
    throw operand_error(n, "a needs rows, and b is one matrix");
  if (provably_different(a.dim(-1), b.dim(0)))
    throw operand_error(n, "inner dimensions differ");
  std::vector<Dim> dims = a.shape().dims();
  dims.back() = b.dim(1);
  return Type::tensor(dtype, dims);
}

void lower_packed_product(LowerContext& c, loops::Function product) {
  const Value a = c.node().in("a"), b = c.node().in("b"), y = c.node().result();
  c.define(c.reduce(
      y.shape().dims(), {a.dim(-1)}, "+", Scalar::zero(y.dtype()), [&](const Index& at, const Index& over) {
        Index of_a = at;
        of_a.back() = over[0];
        return Scalar::apply(product, {LowerContext::require_equal(a.dim(-1), b.dim(0), c.in(a, of_a)),
                                       c.in(b, {over[0], at.back()})});
      }));
}

const Family& vnni_pack_ops() {
  static const Family ops = {
      {.name = "words",
       .doc = "four bytes, or two bf16, side by side as one integer of 32 bits, the first as its lowest",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .results = {{"y", "i32"}},
       .types = {{"T", {DType::I8, DType::U8, DType::BF16}}},
       .traits = {.reshapes = true},
       .infer = words_op::infer,
       .eval = words_op::eval},
      {.name = "matmul_words",
       .doc = "the product of matrices of bytes, four to a word: those of a have no sign, those of b do",
       .operands = {{"a", "i32"}, {"b", "i32"}},
       .results = {{"y", "i32"}},
       .infer = matmul_op::infer,
       .eval = matmul_op::eval,
       .lower = matmul_op::lower},
  };
  return ops;
}

Value words(Value x) { return x.graph().create("words", {{"x", x}})->result(); }

Value matmul_words(Value a, Value b) {
  return a.graph().create("matmul_words", {{"a", a}, {"b", b}})->result();
}

}  // namespace tenon
