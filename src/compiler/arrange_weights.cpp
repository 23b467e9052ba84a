#include "compiler/arrange_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "base/pages.h"
#include "base/run_all.h"
#include "ops/data.h"
#include "ops/linear.h"

namespace tenon {
namespace {

// Rows and columns that are moved together, as many elements as a cache line holds; and rows that stay in
// cache while their columns are moved, so that whole stretches of the result are written.
constexpr int64_t kBlock = 16, kRows = 512;

template <class T>
void transpose_block(const T* x, T* y, int64_t rows, int64_t columns, int64_t i, int64_t j) {
  for (int64_t k = j; k < std::min(j + kBlock, columns); ++k)
    for (int64_t l = i; l < std::min(i + kBlock, rows); ++l)
      y[k * rows + l] = x[l * columns + k];
}

template <class T>
void transpose_elements(const Tensor& from, Tensor& to) {
  const int64_t rows = from.extent(0), columns = from.extent(1);
  const T* x = from.data<T>().data();
  T* y = to.mutable_data<T>().data();
  for (int64_t first = 0; first < rows; first += kRows)
    for (int64_t j = 0; j < columns; j += kBlock)
      for (int64_t i = first; i < std::min(first + kRows, rows); i += kBlock)
        transpose_block(x, y, rows, columns, i, j);
}

std::optional<Tensor> transposed(const Tensor& matrix) {
  Tensor result(matrix.dtype(), {matrix.extent(1), matrix.extent(0)});
  switch (matrix.element_size()) {
    case 1:
      transpose_elements<uint8_t>(matrix, result);
      break;
    case 2:
      transpose_elements<uint16_t>(matrix, result);
      break;
    case 4:
      transpose_elements<uint32_t>(matrix, result);
      break;
    case 8:
      transpose_elements<uint64_t>(matrix, result);
      break;
    default:
      return std::nullopt;
  }
  return result;
}

// What was read of a file is not needed a second time.
void release(const Literal& literal) {
  if (const auto* slice = std::get_if<Literal::FileSlice>(&literal.form()))
    release_pages(slice->file->bytes().subspan(slice->offset, slice->size));
}

// A constant on the right of products that transpose it.
struct Weight {
  Value matrix;
  std::vector<Node*> products;
  std::optional<Tensor> transposed = {};

  void transpose() {
    const Literal& literal = *literal_of(matrix);
    transposed = tenon::transposed(literal.tensor());
    release(literal);
  }

  void replace(Graph& graph) {
    if (!transposed)
      return;
    std::optional<Value> other;  // what several products share stays shared
    for (Node* node : products) {
      const InsertBefore here(node);
      const WithSources sources(*node);
      if (!other)
        other = constant(graph, *std::exchange(transposed, std::nullopt));
      graph.replace(node, {matmul(node->in("a"), *other, {.a = node->attr("transpose_a"), .b = false})});
    }
    if (matrix.use_count() == 0)
      graph.erase(matrix.node());
  }
};

std::vector<Weight> find_weights(const Graph& graph) {
  std::vector<Weight> weights;
  std::map<Value, size_t> numbers;
  for (Node* node : graph.nodes()) {
    if (!node->is("matmul") || !node->attr("transpose_b"))
      continue;
    const Value b = node->in("b");
    if (literal_of(b) == nullptr || b.rank() != 2)
      continue;
    const auto [it, fresh] = numbers.emplace(b, weights.size());
    if (fresh)
      weights.push_back({b, {}});
    weights[it->second].products.push_back(node);
  }
  return weights;
}

}  // namespace

void arrange_weights(Graph& graph, int threads) {
  std::vector<Weight> weights = find_weights(graph);
  // Few at a time, so that not all of them are in memory twice.
  const auto at_once = static_cast<size_t>(2 * threads);
  for (std::span<Weight> left = weights; !left.empty(); left = left.subspan(std::min(at_once, left.size()))) {
    const std::span<Weight> some = left.first(std::min(at_once, left.size()));
    run_all(some.size(), threads, [&](size_t i) { some[i].transpose(); });
    for (Weight& weight : some)
      weight.replace(graph);
  }
}

}  // namespace tenon
