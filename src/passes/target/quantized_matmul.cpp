#include "passes/target/quantized_matmul.h"

#include <algorithm>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "passes/target/constant_pieces.h"
#include "passes/target/quantized_operands.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

bool is_byte(DType dtype) { return dtype == DType::U8 || dtype == DType::I8; }

bool is_one_number(Value value) {
  const std::optional<Extents> extents = value.shape().extents();
  return extents && extents->size() <= 1 && element_count(*extents) == 1;
}

std::vector<int32_t> as_integers(const Literal& literal) {
  std::vector<int32_t> integers;
  for (double each : widen<double>(literal.tensor()))
    integers.push_back(static_cast<int32_t>(each));
  return integers;
}

// The operands of products and convolutions, and the axis of columns and filters in the second.
struct Operands {
  Value x, w;
  int64_t axis;
};

std::optional<Operands> operands_of(const Node& node) {
  const std::vector<Value> operands = node.operands();
  if (!std::all_of(operands.begin(), operands.end(),
                   [](Value each) { return each.type().is_tensor() && each.shape().ranked(); }))
    return std::nullopt;
  if (node.is("conv"))
    return Operands{node.in("x"), node.in("w"), 0};
  if (node.is("matmul") && node.in("b").rank() == 2)
    return Operands{node.in("a"), node.in("b"), node.attr("transpose_b") ? 0 : 1};
  return std::nullopt;
}

std::optional<Value> sum_of(const Node& node, const QuantizedOperand& x, const QuantizedWeights& w) {
  const WithSources sources(node);
  return node.is("conv") ? quantized_convolution(node, x, w) : quantized_product(node, x, w);
}

// --- integers ---

std::optional<Value> widened_bytes(Value value) {
  if (value.is_input() || !value.node()->is("cast"))
    return std::nullopt;
  const Value from = value.node()->operand(0);
  return is_byte(from.dtype()) ? std::optional(from) : std::nullopt;
}

std::optional<QuantizedOperand> shifted_bytes(Value value) {
  if (const std::optional<Value> bytes = widened_bytes(value))
    return QuantizedOperand{*bytes, std::nullopt};
  if (value.is_input() || !value.node()->is("sub"))
    return std::nullopt;
  const std::optional<Value> bytes = widened_bytes(value.node()->operand(0));
  return bytes && bytes->shape() == value.shape()
             ? std::optional(QuantizedOperand{*bytes, value.node()->operand(1)})
             : std::nullopt;
}

// Whether a shape that is broadcast to w differs along one axis alone.
bool runs_along(const Extents& extents, int64_t axis, int64_t rank) {
  const int64_t missing = rank - std::ssize(extents);
  for (int64_t i = 0; i < std::ssize(extents); ++i)
    if (extents[static_cast<size_t>(i)] != 1 && i + missing != axis)
      return false;
  return missing >= 0;
}

// Integers that bytes have room for, as where a small constant was widened and shifted before.
std::optional<QuantizedWeights> small_weights(const Literal& literal) {
  if (literal.dtype() != DType::I32)
    return std::nullopt;
  const Tensor wide = literal.tensor();
  const std::span<const int32_t> integers = wide.data<int32_t>();
  if (integers.empty())
    return std::nullopt;
  const auto [least, greatest] = std::ranges::minmax(integers);
  if (int64_t{greatest} - least > UINT8_MAX || least < -UINT8_MAX || greatest > UINT8_MAX)
    return std::nullopt;
  Tensor bytes(DType::U8, literal.extents());
  std::ranges::transform(integers, bytes.mutable_data<uint8_t>().begin(),
                         [&](int32_t each) { return static_cast<uint8_t>(each - least); });
  return QuantizedWeights{std::move(bytes), {-least}};
}

std::optional<QuantizedWeights> shifted_weights(Value value, int64_t axis) {
  if (const Literal* literal = literal_of(value))
    return small_weights(*literal);
  const std::optional<QuantizedOperand> shifted = shifted_bytes(value);
  const std::optional<Pieces> bytes = shifted ? pieces_of(shifted->bytes) : std::nullopt;
  if (!bytes)
    return std::nullopt;
  if (!shifted->zero_point)
    return QuantizedWeights{join(*bytes), {0}};
  const Literal* zero_points = literal_of(*shifted->zero_point);
  if (zero_points == nullptr || !runs_along(zero_points->extents(), axis, value.rank()))
    return std::nullopt;
  return QuantizedWeights{join(*bytes), as_integers(*zero_points)};
}

std::optional<Value> integers_for(const Node& node) {
  const std::optional<Operands> operands = operands_of(node);
  if (!operands || node.result().dtype() != DType::I32)
    return std::nullopt;
  const std::optional<QuantizedOperand> x = shifted_bytes(operands->x);
  const std::optional<QuantizedWeights> w = shifted_weights(operands->w, operands->axis);
  if (!x || !w || (x->zero_point && !is_one_number(*x->zero_point)))
    return std::nullopt;
  const std::optional<Value> sum = sum_of(node, *x, *w);
  return sum ? std::optional(cast(*sum, DType::I32)) : std::nullopt;
}

// --- floats ---

// Sums of products of so many integers of nine bits have room in 32.
constexpr int64_t kMostProducts = INT32_MAX / (UINT8_MAX * UINT8_MAX);

const Node* dequantisation(Value value) {
  const Node* node = value.is_input() ? nullptr : value.node();
  return node != nullptr && node->is("dequantize") && is_byte(node->in("x").dtype()) &&
                 node->result().dtype() == DType::F32 && node->in("scale").dtype() == DType::F32
             ? node
             : nullptr;
}

// Of bytes with one scale and zero point.
std::optional<QuantizedOperand> dequantised_bytes(const Node& node) {
  if (!is_one_number(node.in("scale")) || (node.has("zero_point") && !is_one_number(node.in("zero_point"))))
    return std::nullopt;
  if (!node.has("zero_point"))
    return QuantizedOperand{node.in("x"), std::nullopt};
  Graph& graph = node.in("x").graph();
  const Value zero_point = node.in("zero_point");
  if (const Literal* literal = literal_of(zero_point))
    return QuantizedOperand{node.in("x"),
                            constant(graph, Tensor::scalar<int32_t>(as_integers(*literal).front()))};
  return QuantizedOperand{node.in("x"), reshape(cast(zero_point, DType::I32), std::vector<int64_t>())};
}

// Of a constant, with one scale and zero point or one for each step along an axis.
std::optional<QuantizedWeights> dequantised_weights(const Node& node, int64_t axis) {
  const Literal *bytes = literal_of(node.in("x")), *scales = literal_of(node.in("scale"));
  if (bytes == nullptr || scales == nullptr)
    return std::nullopt;
  const bool by_step = scales->count() > 1;
  if (by_step && (scales->extents().size() != 1 ||
                  checked_axis("dequantize", node.attr("axis"), node.in("x").rank()) != axis))
    return std::nullopt;
  if (!node.has("zero_point"))
    return QuantizedWeights{bytes->tensor(), {0}};
  const Literal* zero_points = literal_of(node.in("zero_point"));
  return zero_points == nullptr ? std::nullopt
                                : std::optional(QuantizedWeights{bytes->tensor(), as_integers(*zero_points)});
}

// The scale of x times that of each column or filter, in a shape that broadcasts to the results.
Value scale_of_results(const Node& node, const Node& x, const Node& w) {
  const Value of_x = reshape(x.in("scale"), std::vector<int64_t>());
  std::vector<int64_t> along;
  if (w.in("scale").shape().element_count() != Dim(1)) {
    along.push_back(-1);
    if (node.is("conv"))
      along.resize(static_cast<size_t>(node.result().rank()) - 1, 1);
  }
  return of_x * reshape(w.in("scale"), along);
}

std::optional<Value> scaled_integers_for(const Node& node) {
  const std::optional<Operands> operands = operands_of(node);
  const Node* x = operands ? dequantisation(operands->x) : nullptr;
  const Node* w = operands ? dequantisation(operands->w) : nullptr;
  if (x == nullptr || w == nullptr)
    return std::nullopt;
  const std::optional<QuantizedWeights> weights = dequantised_weights(*w, operands->axis);
  const int64_t columns = weights ? weights->bytes.extent(operands->axis) : 0;
  if (columns == 0 || weights->bytes.count() / columns > kMostProducts)
    return std::nullopt;
  const std::optional<QuantizedOperand> bytes = dequantised_bytes(*x);
  const std::optional<Value> sum = bytes ? sum_of(node, *bytes, *weights) : std::nullopt;
  if (!sum)
    return std::nullopt;
  const WithSources sources(node);
  return cast(*sum, DType::F32) * scale_of_results(node, *x, *w);
}

template <class Rewrite>
void rewrite_nodes(Graph& graph, Journal& journal, std::string_view rule, Numerics numerics,
                   const Rewrite& rewrite) {
  for (Node* node : graph.nodes()) {
    const InsertBefore here(node);
    if (const std::optional<Value> value = rewrite(*node); value && value->type() == node->result().type()) {
      if (!journal.is_open())
        return;
      journal.applied(rule, {node}, numerics);
      graph.replace(node, {*value});
    }
  }
}

}  // namespace

void quantized_matmul(Graph& graph, Journal& journal) {
  rewrite_nodes(graph, journal, "quantized-matmul", Numerics::BitExact, integers_for);
}

void dequantized_matmul(Graph& graph, Journal& journal) {
  rewrite_nodes(graph, journal, "dequantized-matmul", Numerics::Reassociates, scaled_integers_for);
}

}  // namespace tenon
