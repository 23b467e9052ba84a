#include "compiler/arrange_weights.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/pages.h"
#include "base/run_all.h"
#include "ops/data.h"
#include "ops/linear.h"

namespace tenon {
namespace {

constexpr int64_t kBlock =
    16;  // rows and columns that are moved together: as many elements as a cache line holds

template <class T>
void transpose_elements(const Tensor& from, Tensor& to) {
  const int64_t rows = from.extent(0), columns = from.extent(1);
  const T* x = from.data<T>().data();
  T* y = to.mutable_data<T>().data();
  for (int64_t i = 0; i < rows; i += kBlock)
    for (int64_t j = 0; j < columns; j += kBlock)
      for (int64_t k = j; k < std::min(j + kBlock, columns); ++k)
        for (int64_t l = i; l < std::min(i + kBlock, rows); ++l)
          y[k * rows + l] = x[l * columns + k];
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

// A constant on the right of products that transpose it.
struct Weight {
  Value matrix;
  std::vector<Node*> products;
  std::optional<Tensor> transposed = {};
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

// What was read of a file is not needed a second time.
void release(const Literal& literal) {
  if (const auto* slice = std::get_if<Literal::FileSlice>(&literal.form()))
    release_pages(slice->file->bytes().subspan(slice->offset, slice->size));
}

}  // namespace

void arrange_weights(Graph& graph, int threads) {
  std::vector<Weight> weights = find_weights(graph);
  run_all(weights.size(), threads, [&](size_t i) {
    const Literal& literal = *literal_of(weights[i].matrix);
    weights[i].transposed = transposed(literal.tensor());
    release(literal);
  });
  for (Weight& weight : weights) {
    if (!weight.transposed)
      continue;
    std::optional<Value> matrix;  // what several products share stays shared
    for (Node* node : weight.products) {
      const InsertBefore here(node);
      const WithSources sources(*node);
      if (!matrix)
        matrix = constant(graph, *weight.transposed);
      graph.replace(node, {matmul(node->in("a"), *matrix, {.a = node->attr("transpose_a"), .b = false})});
    }
    if (weight.matrix.use_count() == 0)
      graph.erase(weight.matrix.node());
  }
}

}  // namespace tenon
