#include "ops/linear.h"

#include <algorithm>

#include "ops/arithmetic.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/reshape.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// A vector counts as a matrix of one row (on the left) or one column (on the right), and that dimension is
// dropped again.
Types infer(const Node& n) {
  const Value a = n.in("a"), b = n.in("b");
  const bool transpose_a = n.attr("transpose_a"), transpose_b = n.attr("transpose_b");
  if (a.rank() == 0 || b.rank() == 0)
    throw operand_error(n, "a scalar has no rows or columns");
  if ((a.rank() == 1 && transpose_a) || (b.rank() == 1 && transpose_b))
    throw operand_error(n, "a vector cannot be transposed");
  const Dim inner_a = a.dim(transpose_a ? -2 : -1);
  const Dim inner_b = b.rank() == 1 ? b.dim(0) : b.dim(transpose_b ? -1 : -2);
  if (provably_different(inner_a, inner_b)) {
    const bool other_way = b.rank() > 1 && b.dim(transpose_b ? -2 : -1) == inner_a;
    throw UserError(fmt::format("{}\n  inner dimensions: {} of a, {} of b{}",
                                operand_error(n, "inner dimensions differ").what(), inner_a, inner_b,
                                other_way ? "\n  hint: b looks transposed" : ""));
  }
  const auto leading = [](Value v) {
    const std::vector<Dim>& dims = v.shape().dims();
    return Shape(std::vector<Dim>(dims.begin(), dims.end() - std::min<int64_t>(v.rank(), 2)));
  };
  const std::optional<Shape> batch = broadcast(leading(a), leading(b));
  if (!batch)
    throw operand_error(n, "the leading dimensions do not broadcast");
  std::vector<Dim> dims = batch->dims();
  if (a.rank() > 1)
    dims.push_back(a.dim(transpose_a ? -1 : -2));
  if (b.rank() > 1)
    dims.push_back(b.dim(transpose_b ? -2 : -1));
  return {Type::tensor(a.dtype(), dims)};
}

// x as a row-major stack of matrices of at least rank 2.
Tensor as_matrices(const Tensor& x, bool left, bool transpose) {
  if (x.rank() == 0 || (x.rank() == 1 && transpose))
    throw user_error("matmul: {} is no matrix{}", describe(x.dtype(), x.extents()),
                     transpose ? " to transpose" : "");
  if (x.rank() == 1)
    return x.reshaped(left ? Extents{1, x.extent(0)} : Extents{x.extent(0), 1});
  if (!transpose)
    return x;
  Extents extents = x.extents(), strides = row_major_strides(extents);
  std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return gather_strided(x, extents, strides);
}

// c[i, j] += Σ a[i, k] · b[k, j], for each element in the order of k. Integers wrap around. Columns and k go
// in blocks, so that a block of b stays in the cache while every row passes over it, and the innermost loop
// runs along memory.
template <class T>
void multiply(const T* a, const T* b, T* c, int64_t rows, int64_t inner, int64_t columns) {
  constexpr int64_t column_block = 256, inner_block = 64;
  for (int64_t first_column = 0; first_column < columns; first_column += column_block)
    for (int64_t first = 0; first < inner; first += inner_block)
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t width = std::min(column_block, columns - first_column);
        T* into = c + i * columns + first_column;
        for (int64_t k = first; k < std::min(first + inner_block, inner); ++k) {
          const T factor = a[i * inner + k];
          const T* from = b + k * columns + first_column;
          for (int64_t j = 0; j < width; ++j)
            add_product(into[j], factor, from[j]);
        }
      }
}

Data eval(const Call& c) {
  const Tensor a = as_matrices(c.in("a"), true, c.attr("transpose_a"));
  const Tensor b = as_matrices(c.in("b"), false, c.attr("transpose_b"));
  const int64_t rows = a.extent(a.rank() - 2), inner = a.extent(a.rank() - 1),
                columns = b.extent(b.rank() - 1);
  if (b.extent(b.rank() - 2) != inner)
    throw user_error("matmul: the inner dimensions {} and {} differ", inner, b.extent(b.rank() - 2));
  const Extents lead_a(a.extents().begin(), a.extents().end() - 2),
      lead_b(b.extents().begin(), b.extents().end() - 2);
  const Extents batch = broadcast_extents("matmul", lead_a, lead_b);
  Extents extents = batch;
  if (c.in("a").rank() > 1)
    extents.push_back(rows);
  if (c.in("b").rank() > 1)
    extents.push_back(columns);
  return with_wide(a.dtype(), [&]<class T>(T) -> Data {
    const std::vector<T> x = widen<T>(a), y = widen<T>(b);
    Tensor sums(dtype_of<T>(), extents);
    T* into = sums.mutable_data<T>().data();
    walk<2>(batch, {broadcast_strides(lead_a, batch), broadcast_strides(lead_b, batch)},
            [&](const std::array<int64_t, 2>& at) {
              multiply(x.data() + at[0] * rows * inner, y.data() + at[1] * inner * columns, into, rows, inner,
                       columns);
              into += rows * columns;
            });
    return {narrow<T>(a.dtype(), extents, sums.data<T>())};
  });
}

// --- lowering ---

void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value a = n.in("a"), b = n.in("b"), y = n.result();
  const bool transpose_a = n.attr("transpose_a"), transpose_b = n.attr("transpose_b");
  const Dim inner = a.dim(transpose_a ? -2 : -1), inner_of_b = b.dim(transpose_b || b.rank() == 1 ? -1 : -2);
  const auto rows = static_cast<size_t>(a.rank() > 1), columns = static_cast<size_t>(b.rank() > 1);
  // The matrix in a stack, then the row and column in it.
  const auto element = [&](Value matrix, const Index& at, std::vector<Scalar> own) {
    const size_t leading = matrix.rank() > 2 ? static_cast<size_t>(matrix.rank()) - 2 : 0;
    const size_t batch = at.size() - rows - columns;
    Index index;
    for (size_t i = 0; i < leading; ++i) {
      const size_t place = batch - leading + i;
      index.push_back(LowerContext::broadcast_index(at[place], matrix.dim(static_cast<int64_t>(i)),
                                                    y.dim(static_cast<int64_t>(place))));
    }
    index.insert(index.end(), own.begin(), own.end());
    return c.in(matrix, index);
  };
  const DType dtype = wide_dtype(y.dtype());
  const auto sum =
      c.reduce(y.shape().dims(), {inner}, "+", Scalar::zero(dtype), [&](const Index& at, const Index& over) {
        std::vector<Scalar> of_a{over[0]}, of_b{over[0]};
        if (rows > 0)
          of_a.insert(transpose_a ? of_a.end() : of_a.begin(), at[at.size() - columns - 1]);
        if (columns > 0)
          of_b.insert(transpose_b ? of_b.begin() : of_b.end(), at.back());
        return LowerContext::require_equal(inner, inner_of_b, element(a, at, of_a)) * element(b, at, of_b);
      });
  c.define(sum);
}

// --- gradient ---

// A stack of matrices times one matrix: the rows of all of them, as one product.
Value one_matrix_gradient(Value a, Value dy, bool transposed) {
  return transposed ? matmul(as_rows(dy), as_rows(a), {.a = true})
                    : matmul(as_rows(a), as_rows(dy), {.a = true});
}

std::vector<Operand> grad(const GradContext& n) {
  const bool transpose_a = n.attr("transpose_a"), transpose_b = n.attr("transpose_b");
  Value a = n.in("a"), b = n.in("b"), dy = n.dy();
  if (b.rank() == 1) {
    b = unsqueeze(b, {1});
    dy = unsqueeze(dy, {-1});
  }
  if (a.rank() == 1) {
    a = unsqueeze(a, {0});
    dy = unsqueeze(dy, {-2});
  }
  const Value da = transpose_a ? matmul(b, dy, {transpose_b, true}) : matmul(dy, b, {.b = !transpose_b});
  const Value db = b.rank() == 2 && !transpose_a ? one_matrix_gradient(a, dy, transpose_b)
                   : transpose_b                 ? matmul(dy, a, {true, transpose_a})
                                                 : matmul(a, dy, {.a = !transpose_a});
  const auto as_operand = [](Value gradient, Value matrix, Value operand) {
    return reshape(sum_to(gradient, matrix), shape_of(operand));
  };
  return {{"a", n.in("a").rank() == 1 ? as_operand(da, a, n.in("a")) : da},
          {"b", n.in("b").rank() == 1 ? as_operand(db, b, n.in("b")) : db}};
}

}  // namespace

const Family& linear_ops() {
  static const Family ops = {
      {.name = "matmul",
       .doc = "the product of two matrices, or of stacks of them whose leading dimensions broadcast",
       .operands = {{"a", "T"}, {"b", "T"}},
       .attributes = {{"transpose_a", AttributeKind::Bool,
                       "whether a's last two dimensions change places first", false},
                      {"transpose_b", AttributeKind::Bool,
                       "whether b's last two dimensions change places first", false}},
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .infer = infer,
       .eval = eval,
       .lower = lower,
       .grad = grad},
  };
  return ops;
}

Value matmul(Value a, Value b, Transposed transposed) {
  return a.graph()
      .create("matmul", {{"a", a}, {"b", b}}, {{"transpose_a", transposed.a}, {"transpose_b", transposed.b}})
      ->result();
}

}  // namespace tenon
