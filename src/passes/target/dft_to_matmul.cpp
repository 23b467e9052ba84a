#include "passes/target/dft_to_matmul.h"

#include <algorithm>

#include "base/error.h"
#include "ir/evaluate.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr int64_t kMostNumbers = 512;  // of a signal and of its spectrum, real and imaginary

// Real and imaginary parts of signals and spectra interleaved: a column for each number of the spectrum.
struct Matrix {
  std::vector<double> numbers;
  int64_t rows, columns, parts;  // so many of the columns are one number of the spectrum

  // Whether any number of a row, or of a column, is other than 0.
  std::vector<int64_t> rows_that_count() const {
    std::vector<int64_t> counts(static_cast<size_t>(rows), 0);
    for (size_t i = 0; i < numbers.size(); ++i)
      counts[i / static_cast<size_t>(columns)] |= numbers[i] != 0;
    return counts;
  }
  std::vector<int64_t> columns_that_count() const {
    std::vector<int64_t> counts(static_cast<size_t>(columns), 0);
    for (size_t i = 0; i < numbers.size(); ++i)
      counts[i % static_cast<size_t>(columns)] |= numbers[i] != 0;
    return counts;
  }
};

// The transforms of all unit signals, by the reference: of a graph of its own.
std::optional<Matrix> matrix_of(const Node& dft, int64_t length, int64_t parts) {
  const int64_t count = length * parts;
  std::vector<double> ones(static_cast<size_t>(count * count), 0);
  for (int64_t i = 0; i < count; ++i)
    ones[static_cast<size_t>(i * count + i)] = 1;
  Graph graph("units");
  Attributes attributes = dft.attributes();
  attributes.insert_or_assign("axis", int64_t{1});
  std::vector<Operand> operands = {
      {"x", constant(graph, narrow<double>(DType::F64, {count, length, parts}, ones))}};
  if (dft.has("length"))
    operands.emplace_back("length", int_vector(graph, {*known_number(dft, "length").constant()}));
  graph.set_outputs(graph.create("dft", std::move(operands), std::move(attributes))->results());
  try {
    const Tensor spectra = evaluate(graph, {}).front().tensor();
    return Matrix{widen<double>(spectra), count, spectra.count() / count, spectra.extents().back()};
  } catch (const UserError&) {
    return std::nullopt;  // running the model will say so
  }
}

// 0 in place of what does not count: the matrix has zeros there, but not everything times 0 is 0.
Value only_what_counts(Value x, const std::vector<int64_t>& counts) {
  if (std::ranges::count(counts, 0) == 0)
    return x;
  const Tensor mask = narrow<int64_t>(DType::Bool, {std::ssize(counts)}, counts);
  return where(constant(x.graph(), mask), x, scalar(x.graph(), x.dtype(), 0));
}

std::optional<Value> product_for(const Node& dft) {
  const Value x = dft.in("x");
  if (dft.is_late("axis") || !x.shape().ranked() || (x.dtype() != DType::F32 && x.dtype() != DType::F64) ||
      (dft.has("length") && !known_number(dft, "length").is_constant()))
    return std::nullopt;
  const int64_t axis = checked_axis("dft", dft.attr("axis"), x.rank());
  const std::optional<int64_t> length = x.dim(axis).constant(), parts = x.dim(-1).constant(),
                               result = dft.result().dim(axis).constant();
  if (!length || !parts || !result || std::min({*length, *parts, *result}) < 1 ||
      std::max(*length * *parts, *result) > kMostNumbers)
    return std::nullopt;
  const std::optional<Matrix> matrix = matrix_of(dft, *length, *parts);
  if (!matrix)
    return std::nullopt;

  // The axis of the signal next to the last, so that both are one.
  Graph& graph = x.graph();
  std::vector<int64_t> order, back(static_cast<size_t>(x.rank()));
  for (int64_t i = 0; i + 1 < x.rank(); ++i)
    if (i != axis)
      order.push_back(i);
  order.insert(order.end(), {axis, x.rank() - 1});
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  std::vector<Value> rows, spectra;
  for (int64_t i = 0; i + 2 < x.rank(); ++i)
    rows.push_back(size_along(x, order[static_cast<size_t>(i)]));
  spectra = rows;
  rows.push_back(int_vector(graph, {matrix->rows}));
  spectra.push_back(int_vector(graph, {matrix->columns / matrix->parts, matrix->parts}));

  const Value signals =
      only_what_counts(reshape(transpose(x, order), concat(rows, 0)), matrix->rows_that_count());
  const Value numbers =
      constant(graph, narrow<double>(x.dtype(), {matrix->rows, matrix->columns}, matrix->numbers));
  const Value y = only_what_counts(matmul(signals, numbers), matrix->columns_that_count());
  return transpose(reshape(y, concat(spectra, 0)), back);
}

}  // namespace

void dft_to_matmul(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!node->is("dft"))
      continue;
    if (!journal.is_open())
      return;
    const InsertBefore here(node);
    const WithSources sources(*node);
    if (const std::optional<Value> product = product_for(*node);
        product && product->type() == node->result().type()) {
      journal.applied("dft-to-matmul", {node}, Numerics::Reassociates);
      graph.replace(node, {*product});
    }
  }
}

}  // namespace tenon
