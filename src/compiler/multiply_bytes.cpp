#include "compiler/multiply_bytes.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/byte_words.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/select.h"

namespace tenon {
namespace {

constexpr int64_t kBytes = 4;     // of a word
constexpr int32_t kOffset = 128;  // between a byte with a sign and one without

// Bytes less a zero point, as i32.
struct Shifted {
  Value bytes;
  std::optional<Value> zero_point;
};

std::optional<Value> widened_bytes(Value value) {
  if (value.is_input() || !value.node()->is("cast"))
    return std::nullopt;
  const Value from = value.node()->operand(0);
  return from.dtype() == DType::U8 || from.dtype() == DType::I8 ? std::optional(from) : std::nullopt;
}

std::optional<Shifted> shifted_bytes(Value value) {
  if (const std::optional<Value> bytes = widened_bytes(value))
    return Shifted{*bytes, std::nullopt};
  if (value.is_input() || !value.node()->is("sub"))
    return std::nullopt;
  const std::optional<Value> bytes = widened_bytes(value.node()->operand(0));
  return bytes && bytes->shape() == value.shape() ? std::optional(Shifted{*bytes, value.node()->operand(1)})
                                                  : std::nullopt;
}

bool is_one_number(Value value) {
  const std::optional<Extents> extents = value.shape().extents();
  return extents && extents->size() <= 1 && element_count(*extents) == 1;
}

// A constant matrix, by rows of what is summed.
struct Columns {
  const Tensor bytes;
  const bool has_sign, transposed;

  int64_t rows() const { return bytes.extent(transposed ? 1 : 0); }
  int64_t columns() const { return bytes.extent(transposed ? 0 : 1); }
  // With a sign.
  int8_t at(int64_t row, int64_t column) const {
    const auto place = static_cast<size_t>(transposed ? column * rows() + row : row * columns() + column);
    const auto byte = static_cast<uint8_t>(bytes.bytes()[place]);
    return static_cast<int8_t>(has_sign ? byte : byte ^ kOffset);
  }

  Tensor words() const {
    Tensor result(DType::I32, {rows() / kBytes, columns()});
    const std::span<int32_t> into = result.mutable_data<int32_t>();
    for (int64_t i = 0; i < rows() / kBytes; ++i)
      for (int64_t j = 0; j < columns(); ++j) {
        uint32_t word = 0;
        for (int64_t k = 0; k < kBytes; ++k)
          word |= static_cast<uint32_t>(static_cast<uint8_t>(at(i * kBytes + k, j))) << (8 * k);
        into[static_cast<size_t>(i * columns() + j)] = static_cast<int32_t>(word);
      }
    return result;
  }

  Tensor sums() const {
    Tensor result(DType::I32, {columns()});
    const std::span<int32_t> into = result.mutable_data<int32_t>();
    std::ranges::fill(into, 0);
    for (int64_t i = 0; i < rows(); ++i)
      for (int64_t j = 0; j < columns(); ++j)
        into[static_cast<size_t>(j)] += at(i, j);
    return result;
  }
};

Value number(Graph& graph, int32_t value) { return constant(graph, Tensor::scalar<int32_t>(value)); }

// Nothing where the product is none of bytes.
std::optional<Value> product_of_bytes(Graph& graph, const Node& node) {
  const std::optional<Shifted> x = shifted_bytes(node.in("a")), w = shifted_bytes(node.in("b"));
  if (!x || !w || (x->zero_point && !is_one_number(*x->zero_point)) ||
      (w->zero_point && (!is_one_number(*w->zero_point) || literal_of(*w->zero_point) == nullptr)))
    return std::nullopt;
  const Literal* literal = literal_of(w->bytes);
  if (literal == nullptr || literal->extents().size() != 2 || x->bytes.rank() < 2)
    return std::nullopt;
  const Columns columns{.bytes = literal->tensor(),
                        .has_sign = w->bytes.dtype() == DType::I8,
                        .transposed = node.attr("transpose_b")};
  if (columns.rows() % kBytes != 0 || columns.rows() == 0 || x->bytes.dim(-1) != Dim(columns.rows()))
    return std::nullopt;
  const WithSources sources(node);
  Value bytes = x->bytes;
  std::optional<Value> zero_of_x = x->zero_point;
  if (bytes.dtype() == DType::I8) {
    bytes = cast(cast(bytes, DType::I32) + number(graph, kOffset), DType::U8);
    zero_of_x = zero_of_x ? *zero_of_x + number(graph, kOffset) : number(graph, kOffset);
  }
  Value sum = matmul_words(words(bytes), constant(graph, columns.words()));
  if (zero_of_x)
    sum = sum - *zero_of_x * constant(graph, columns.sums());
  const int32_t zero_of_w =
      (w->zero_point ? literal_of(*w->zero_point)->tensor().data<int32_t>().front() : 0) -
      (columns.has_sign ? 0 : kOffset);
  if (zero_of_w != 0) {
    Value sum_of_x = reduce_sum(cast(bytes, DType::I32), {-1}, Keep::Dims);
    if (zero_of_x)
      sum_of_x = sum_of_x - *zero_of_x * number(graph, static_cast<int32_t>(columns.rows()));
    sum = sum - sum_of_x * number(graph, zero_of_w);
  }
  return sum;
}

}  // namespace

void multiply_bytes(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (!node->is("matmul") || node->result().dtype() != DType::I32 || node->attr("transpose_a"))
      continue;
    const InsertBefore here(node);
    if (const std::optional<Value> sum = product_of_bytes(graph, *node))
      graph.replace(node, {*sum});
  }
}

}  // namespace tenon
