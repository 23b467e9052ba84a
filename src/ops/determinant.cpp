#include "ops/determinant.h"

#include <algorithm>
#include <cmath>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gather.h"
#include "ops/gradient.h"
#include "ops/reshape.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.rank() < 2 || provably_different(x.dim(-1), x.dim(-2)))
    throw operand_error(n, "the last two dimensions must be those of a square matrix");
  const std::vector<Dim>& dims = x.shape().dims();
  return {Type::tensor(x.dtype(), std::vector<Dim>(dims.begin(), dims.end() - 2))};
}

// By Gaussian elimination with the largest pivot, which changes the sign where rows change places.
double eliminate(std::span<double> matrix, size_t size) {
  double result = 1;
  for (size_t column = 0; column < size; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < size; ++row)
      if (std::fabs(matrix[row * size + column]) > std::fabs(matrix[pivot * size + column]))
        pivot = row;
    if (pivot != column) {
      std::swap_ranges(&matrix[pivot * size], &matrix[pivot * size] + size, &matrix[column * size]);
      result = -result;
    }
    const double head = matrix[column * size + column];
    result *= head;
    if (head == 0)
      return result;
    for (size_t row = column + 1; row < size; ++row) {
      const double factor = matrix[row * size + column] / head;
      for (size_t i = column; i < size; ++i)
        matrix[row * size + i] -= factor * matrix[column * size + i];
    }
  }
  return result;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  if (x.rank() < 2 || x.extent(x.rank() - 1) != x.extent(x.rank() - 2))
    throw user_error("determinant: x is {}, but the last two dimensions must be those of a square matrix",
                     describe(x.dtype(), x.extents()));
  const auto size = static_cast<size_t>(x.extents().back());
  const Extents extents(x.extents().begin(), x.extents().end() - 2);
  std::vector<double> values = widen<double>(x);
  std::vector<double> y = zeros<double>(extents, 1);  // the empty matrix has determinant 1
  if (size > 0)
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = eliminate(std::span(values).subspan(i * size * size, size * size), size);
  return {narrow<double>(x.dtype(), extents, y)};
}

// The determinant changes with an element by its cofactor: the determinant of the matrix without its row and
// column, with the sign of a chessboard. So a singular matrix has a gradient, too.
std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x");
  const auto size = x.dim(-1).constant();
  if (!size)
    throw n.decline("the size of the matrices must be known before the graph runs");
  std::vector<int64_t> others;
  std::vector<double> signs;
  for (int64_t i = 0; i < *size; ++i)
    for (int64_t j = 0; j < *size; ++j) {
      signs.push_back((i + j) % 2 == 0 ? 1 : -1);
      if (j != i)
        others.push_back(j);
    }
  const Value kept = constant(n.graph(), Tensor::of(std::span<const int64_t>(others), {*size, *size - 1}));
  // [row, other rows, column, other columns], after the leading dimensions
  const Value minors = gather(gather(x, kept, -2), kept, -1);
  std::vector<int64_t> permutation(static_cast<size_t>(minors.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[permutation.size() - 2], permutation[permutation.size() - 3]);
  const Value chessboard = constant(n.graph(), narrow<double>(x.dtype(), {*size, *size}, signs));
  return {{"x", unsqueeze(n.dy(), {-2, -1}) * chessboard * determinant(transpose(minors, permutation))}};
}

}  // namespace

const Family& determinant_ops() {
  static const Family ops = {{.name = "determinant",
                              .doc = "the determinant of each matrix in the last two dimensions",
                              .operands = {{"x", "T"}},
                              .results = {{"y", "T"}},
                              .types = {{"T", Floats}},
                              .infer = infer,
                              .eval = eval,
                              .grad = grad}};
  return ops;
}

Value determinant(Value x) { return x.graph().create("determinant", {{"x", x}})->result(); }

}  // namespace tenon
