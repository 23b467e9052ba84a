#include "compiler/arrange_weights.h"

#include <algorithm>
#include <cstring>
#include <map>

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

}  // namespace

void arrange_weights(Graph& graph) {
  std::map<Value, Value> done;  // what several products share stays shared
  for (Node* node : graph.nodes()) {
    if (!node->is("matmul") || !node->attr("transpose_b"))
      continue;
    const Value b = node->in("b");
    const Literal* literal = literal_of(b);
    if (literal == nullptr || b.rank() != 2)
      continue;
    const InsertBefore here(node);
    const WithSources sources(*node);
    auto it = done.find(b);
    if (it == done.end()) {
      const std::optional<Tensor> matrix = transposed(literal->tensor());
      if (!matrix)
        continue;
      it = done.emplace(b, constant(graph, *matrix)).first;
    }
    graph.replace(node, {matmul(node->in("a"), it->second, {.a = node->attr("transpose_a"), .b = false})});
  }
  for (const auto& [matrix, other] : done)
    if (matrix.use_count() == 0)
      graph.erase(matrix.node());
}

}  // namespace tenon
