#include "ops/widening_matmul.h"

#include <algorithm>

#include "ops/elements.h"
#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value a = n.in("a"), b = n.in("b");
  if (a.rank() == 0 || b.rank() != 2)
    throw operand_error(n, "a needs rows, and b is one matrix");
  if (provably_different(a.dim(-1), b.dim(0)))
    throw operand_error(n, "inner dimensions differ");
  std::vector<Dim> dims = a.shape().dims();
  dims.back() = b.dim(1);
  return {Type::tensor(accumulator_of(n), dims)};
}

// Rounded once to Sum, or wrapped around.
template <class Sum, class Wide>
Tensor product(const Tensor& a, const Tensor& b) {
  const int64_t inner = b.extent(0), columns = b.extent(1);
  Extents extents = a.extents();
  extents.back() = columns;
  Tensor y(dtype_of<Sum>(), extents);
  const std::vector<Wide> x = widen<Wide>(a), w = widen<Wide>(b);
  std::vector<Wide> sums(static_cast<size_t>(columns));
  Sum* into = y.mutable_data<Sum>().data();
  for (int64_t i = 0; i < y.count(); i += columns) {
    std::ranges::fill(sums, Wide(0));
    for (int64_t k = 0; k < inner; ++k)
      for (int64_t j = 0; j < columns; ++j)
        sums[static_cast<size_t>(j)] +=
            x[static_cast<size_t>(i / columns * inner + k)] * w[static_cast<size_t>(k * columns + j)];
    std::ranges::transform(sums, into + i, [](Wide sum) { return static_cast<Sum>(sum); });
  }
  return y;
}

Data eval(const Call& c) {
  const Tensor &a = c.in("a"), &b = c.in("b");
  if (a.extents().back() != b.extent(0))
    throw user_error("{}: rows of {}, and columns of {}", c.node().op().name, a.extents().back(),
                     b.extent(0));
  const DType accumulator = c.attr("accumulator");
  return {accumulator == DType::I32 ? product<int32_t, int64_t>(a, b) : product<float, double>(a, b)};
}

void lower(LowerContext& c) {
  const Value a = c.node().in("a"), b = c.node().in("b"), y = c.node().result();
  const auto widened = [&](Value x, const Index& at) { return Scalar::cast(y.dtype(), c.stored(x, at)); };
  c.define(c.reduce(y.shape().dims(), {a.dim(-1)}, "+", Scalar::zero(y.dtype()),
                    [&](const Index& at, const Index& over) {
                      Index of_a = at;
                      of_a.back() = over[0];
                      return LowerContext::require_equal(a.dim(-1), b.dim(0), widened(a, of_a)) *
                             widened(b, {over[0], at.back()});
                    }));
}

}  // namespace

const Family& widening_matmul_ops() {
  static const Family ops = {
      {.name = "widening_matmul",
       .doc = "the product of rows and one matrix, of elements that are converted to the accumulator's dtype",
       .operands = {{"a", "A"}, {"b", "B"}},
       .attributes = {accumulator_attribute()},
       .results = {{"y", "$accumulator"}},
       .types = {{"A", {DType::U8, DType::I8, DType::BF16}}, {"B", {DType::U8, DType::I8, DType::BF16}}},
       .infer = infer,
       .eval = eval,
       .lower = lower},
  };
  return ops;
}

Value widening_matmul(Value a, Value b, DType accumulator) {
  return a.graph().create("widening_matmul", {{"a", a}, {"b", b}}, {{"accumulator", accumulator}})->result();
}

AttributeDecl accumulator_attribute() {
  return {"accumulator", AttributeKind::DType, "the dtype of sums: i32, for integers alone, or f32"};
}

DType accumulator_of(const Node& node) {
  const DType accumulator = node.attr("accumulator");
  const bool has_floats =
      std::ranges::any_of(node.operands(), [](Value each) { return is_float(each.dtype()); });
  if (accumulator != DType::F32 && (accumulator != DType::I32 || has_floats))
    throw operand_error(node, fmt::format("sums of these cannot be {}", accumulator));
  return accumulator;
}

}  // namespace tenon
