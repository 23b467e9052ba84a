#include "compiler/arrange_weights.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>

#include "base/run_all.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "tensor/release_literal.h"

namespace tenon {
namespace {

// Rows and columns that are moved together, as many elements as a cache line holds.
constexpr int64_t kBlock = 16;

// 16 elements of 4 bytes.
typedef uint32_t Line __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint32_t WholeLine __attribute__((vector_size(64), may_alias));

// Swaps the elements of two lines that stand in each other's place: those whose number has the bit of
// `distance`.
template <int distance, size_t... i>
void exchange(Line& a, Line& b, std::index_sequence<i...>) {
  const Line low = a, high = b;
  a = __builtin_shufflevector(low, high, ((i & distance) != 0 ? 16 + i - distance : i)...);
  b = __builtin_shufflevector(low, high, ((i & distance) != 0 ? 16 + i : i + distance)...);
}
template <int distance>
void exchange_all(Line* lines) {
  for (int i = 0; i < kBlock; ++i)
    if ((i & distance) == 0)
      exchange<distance>(lines[i], lines[i + distance], std::make_index_sequence<16>());
}

// A whole block, in registers. Lines of the result are not fetched only to be overwritten.
void transpose_block(const uint32_t* x, int64_t from_stride, uint32_t* y, int64_t to_stride) {
  Line lines[kBlock];
  for (int i = 0; i < kBlock; ++i)
    lines[i] = *reinterpret_cast<const Line*>(x + i * from_stride);
  exchange_all<1>(lines);
  exchange_all<2>(lines);
  exchange_all<4>(lines);
  exchange_all<8>(lines);
  const bool whole = reinterpret_cast<uintptr_t>(y) % sizeof(Line) == 0 && to_stride % kBlock == 0;
  for (int i = 0; i < kBlock; ++i)
    if (whole)
      __builtin_nontemporal_store(lines[i], reinterpret_cast<WholeLine*>(y + i * to_stride));
    else
      *reinterpret_cast<Line*>(y + i * to_stride) = lines[i];
}

// A matrix whose elements are of this size, and where its transpose goes, whose rows may be longer.
template <class T>
struct Transposition {
  const T* x;
  T* y;
  int64_t rows, columns, stride;  // of y, in elements

  void run() const {
    for (int64_t i = 0; i < rows; i += kBlock)
      for (int64_t j = 0; j < columns; j += kBlock)
        move_block(i, j);
  }
  void move_block(int64_t i, int64_t j) const {
    if constexpr (std::is_same_v<T, uint32_t>)
      if (i + kBlock <= rows && j + kBlock <= columns)
        return transpose_block(x + i * columns + j, columns, y + j * stride + i, stride);
    for (int64_t k = j; k < std::min(j + kBlock, columns); ++k)
      for (int64_t l = i; l < std::min(i + kBlock, rows); ++l)
        y[k * stride + l] = x[l * columns + k];
  }
};

template <class T>
void transpose_into(Tensor& to, int64_t column, const Tensor& from) {
  Transposition<T>{.x = from.data<T>().data(),
                   .y = to.mutable_data<T>().data() + column,
                   .rows = from.extent(0),
                   .columns = from.extent(1),
                   .stride = to.extent(1)}
      .run();
}

// From this column of the result on. False where elements have no size that can be moved.
bool transpose_piece(Tensor& to, int64_t column, const Tensor& from) {
  switch (from.element_size()) {
    case 1:
      transpose_into<uint8_t>(to, column, from);
      return true;
    case 2:
      transpose_into<uint16_t>(to, column, from);
      return true;
    case 4:
      transpose_into<uint32_t>(to, column, from);
      return true;
    case 8:
      transpose_into<uint64_t>(to, column, from);
      return true;
    default:
      return false;
  }
}

// A constant on the right of products that transpose it, or several that are joined along their rows.
struct Weight {
  Value matrix;
  std::vector<Value> pieces;
  std::vector<Node*> products = {};
  std::optional<Tensor> transposed = {};

  void transpose() {
    const Extents extents = *matrix.shape().extents();
    Tensor result(matrix.dtype(), {extents[1], extents[0]});
    int64_t column = 0;
    for (Value piece : pieces) {
      const Literal& literal = *literal_of(piece);
      if (!transpose_piece(result, column, literal.tensor()))
        return;
      column += literal.extents()[0];
      release(literal);
    }
    transposed = std::move(result);
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

// The constants that a matrix consists of; empty where it does not.
std::vector<Value> pieces_of(Value matrix) {
  if (matrix.is_input() || !matrix.shape().ranked() || matrix.rank() != 2 || !matrix.shape().extents())
    return {};
  if (literal_of(matrix) != nullptr)
    return {matrix};
  if (!matrix.node()->is("concat") || static_cast<int64_t>(matrix.node()->attr("axis")) != 0)
    return {};
  std::vector<Value> pieces = matrix.node()->operands();
  return std::all_of(pieces.begin(), pieces.end(), [](Value each) { return literal_of(each) != nullptr; })
             ? pieces
             : std::vector<Value>();
}

std::vector<Weight> find_weights(const Graph& graph) {
  std::vector<Weight> weights;
  std::map<Value, size_t> numbers;
  for (Node* node : graph.nodes()) {
    if (!node->is("matmul") || !node->attr("transpose_b"))
      continue;
    const Value b = node->in("b");
    std::vector<Value> pieces = pieces_of(b);
    if (pieces.empty())
      continue;
    const auto [it, fresh] = numbers.emplace(b, weights.size());
    if (fresh)
      weights.push_back({b, std::move(pieces)});
    weights[it->second].products.push_back(node);
  }
  return weights;
}

// Goes through a tensor in its own order, but for the dimension that becomes the last, so that what is read
// together lies together, and so does what is written.
template <class T>
void reorder_into(Tensor& to, const Tensor& from, const std::vector<size_t>& order) {
  const Extents& extents = from.extents();
  const Extents from_strides = row_major_strides(extents), strides = row_major_strides(to.extents());
  Extents to_strides(extents.size());
  for (size_t i = 0; i < order.size(); ++i)
    to_strides[order[i]] = strides[i];
  const size_t last = order.back();
  const T* x = from.data<T>().data();
  T* y = to.mutable_data<T>().data();
  const auto move = [&](const auto& self, size_t dim, const T* source, T* target) -> void {
    if (dim == extents.size()) {
      for (int64_t i = 0; i < extents[last]; ++i)
        target[i] = source[i * from_strides[last]];
      return;
    }
    for (int64_t i = 0; i < (dim == last ? 1 : extents[dim]); ++i)
      self(self, dim + 1, source + i * from_strides[dim], target + i * to_strides[dim]);
  };
  move(move, 0, x, y);
}

}  // namespace

Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order) {
  Extents extents;
  for (size_t dim : order)
    extents.push_back(tensor.extents()[dim]);
  Tensor result(tensor.dtype(), extents);
  switch (tensor.element_size()) {
    case 1:
      reorder_into<uint8_t>(result, tensor, order);
      break;
    case 2:
      reorder_into<uint16_t>(result, tensor, order);
      break;
    case 4:
      reorder_into<uint32_t>(result, tensor, order);
      break;
    default:
      reorder_into<uint64_t>(result, tensor, order);
  }
  return result;
}

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
