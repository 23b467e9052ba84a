#include "frontends/onnx/write/integer_products.h"

#include <algorithm>

#include "frontends/dimensions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

// 8-bit integers less their zero point: one, or a vector of one for each step along an axis.
struct Centred {
  Value integers, zero_point;
};

const Node* made_by(Value value, std::string_view op) {
  return !value.is_input() && value.node()->is(op) ? value.node() : nullptr;
}

std::string_view left(const Node& product) { return product.is("conv") ? "x" : "a"; }
std::string_view right(const Node& product) { return product.is("conv") ? "w" : "b"; }

// Weights may have a zero point for each output channel, and a matrix on the right for each column.
std::optional<int64_t> channel_axis(const Node& product) {
  const Value w = product.in(right(product));
  if (!w.shape().ranked() || w.rank() == 0)
    return std::nullopt;
  return product.is("conv") ? 0 : w.rank() - 1;
}

// What was 8 bits wide before it was cast to i32; empty for other values.
Value narrow_of(Value value) {
  const Node* cast = made_by(value, "cast");
  if (cast == nullptr || value.dtype() != DType::I32)
    return {};
  const Value x = cast->in("x");
  return x.dtype() == DType::U8 || x.dtype() == DType::I8 ? x : Value();
}

bool is_one(Value value) { return value.shape().ranked() && value.shape().element_count() == Dim(1); }

// Whether there is one number for each step along the axis of x, as they are broadcast to it.
bool is_along(Value numbers, Value x, std::optional<int64_t> axis) {
  if (!axis || !numbers.shape().ranked() || !x.shape().ranked() || numbers.rank() > x.rank())
    return false;
  const int64_t missing = x.rank() - numbers.rank();
  for (int64_t i = 0; i < numbers.rank(); ++i)
    if (numbers.dim(i) != (i + missing == *axis ? x.dim(*axis) : Dim(1)))
      return false;
  return missing <= *axis;
}

Value zero_point_of(Value zero, Value x, std::optional<int64_t> axis) {
  const Node* unsqueeze = made_by(zero, "unsqueeze");
  const Value narrow = narrow_of(unsqueeze != nullptr ? unsqueeze->in("x") : zero);
  if (!narrow || narrow.dtype() != x.dtype() || !narrow.shape().ranked() || narrow.rank() > 1)
    return {};
  return is_one(narrow) || (narrow.rank() == 1 && is_along(zero, x, axis)) ? narrow : Value();
}

std::optional<Centred> centred(Value value, std::optional<int64_t> axis) {
  if (const Value narrow = narrow_of(value))
    return Centred{narrow, {}};
  const Node* sub = made_by(value, "sub");
  const Value narrow = sub != nullptr ? narrow_of(sub->in("a")) : Value();
  const Value zero = narrow ? zero_point_of(sub->in("b"), narrow, axis) : Value();
  return zero ? std::optional(Centred{narrow, zero}) : std::nullopt;
}

// --- constants that are made narrow

bool fit(const std::vector<int64_t>& numbers, DType dtype) {
  const int64_t least = dtype == DType::I8 ? -128 : 0;
  return std::ranges::all_of(numbers, [&](int64_t each) { return least <= each && each <= least + 255; });
}

Value zero_point(Graph& graph, DType dtype, const std::vector<int64_t>& numbers) {
  const Extents extents = numbers.size() == 1 ? Extents() : Extents{static_cast<int64_t>(numbers.size())};
  return constant(graph, narrow<int64_t>(dtype, extents, numbers));
}

// x, widened, less a constant, or with one added to it.
std::optional<Centred> less_constant(Value wide, Value shift, int64_t sign, std::optional<int64_t> axis,
                                     ConstantExpressions& constants) {
  const Value x = narrow_of(wide);
  if (!x || !constants.is_computable(shift) || !(is_one(shift) || is_along(shift, x, axis)))
    return std::nullopt;
  std::vector<int64_t> numbers = widen<int64_t>(compute(shift));
  for (int64_t& number : numbers)
    number *= sign;
  return fit(numbers, x.dtype()) ? std::optional(Centred{x, zero_point(x.graph(), x.dtype(), numbers)})
                                 : std::nullopt;
}

std::optional<Centred> less_constant(Value value, std::optional<int64_t> axis,
                                     ConstantExpressions& constants) {
  if (const Node* sub = made_by(value, "sub"))
    return less_constant(sub->in("a"), sub->in("b"), 1, axis, constants);
  const Node* add = made_by(value, "add");
  if (add == nullptr)
    return std::nullopt;
  const auto first = less_constant(add->in("a"), add->in("b"), -1, axis, constants);
  return first ? first : less_constant(add->in("b"), add->in("a"), -1, axis, constants);
}

// The steps along an axis to which elements belong: those of `inner` elements in turn.
struct Steps {
  size_t count = 1, inner = 1;
  size_t of(size_t element) const { return element / inner % count; }
};

// What makes numbers of u8 of those of each step when it is added, and is one itself; nothing where there is
// no such number.
std::optional<std::vector<int64_t>> shifts_to_u8(const std::vector<int64_t>& numbers, const Steps& steps) {
  std::vector<int64_t> least(steps.count, 0), greatest(steps.count, 0);
  for (size_t i = 0; i < numbers.size(); ++i) {
    const size_t step = steps.of(i);
    least[step] = std::min(least[step], numbers[i]);
    greatest[step] = std::max(greatest[step], numbers[i]);
  }
  for (size_t step = 0; step < steps.count; ++step) {
    if (greatest[step] - least[step] > 255)
      return std::nullopt;
    least[step] = -least[step];
  }
  return least;
}

Steps steps_along(const Extents& extents, int64_t axis) {
  const auto at = extents.begin() + axis;
  return {static_cast<size_t>(*at), static_cast<size_t>(element_count({at + 1, extents.end()}))};
}

// Weights that were widened, and their zero point taken off, before it was known what they are for.
std::optional<Centred> narrowed(Value value, std::optional<int64_t> axis, ConstantExpressions& constants) {
  if (!constants.is_computable(value))
    return std::nullopt;
  const Tensor wide = compute(value);
  std::vector<int64_t> numbers = widen<int64_t>(wide);
  const auto of = [&](DType dtype) {
    return constant(value.graph(), narrow<int64_t>(dtype, wide.extents(), numbers));
  };
  if (fit(numbers, DType::I8))
    return Centred{of(DType::I8), {}};
  Steps steps;
  auto shifts = shifts_to_u8(numbers, steps);
  if (!shifts && axis) {
    steps = steps_along(wide.extents(), *axis);
    shifts = shifts_to_u8(numbers, steps);
  }
  if (!shifts)
    return std::nullopt;
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] += (*shifts)[steps.of(i)];
  return Centred{of(DType::U8), zero_point(value.graph(), DType::U8, *shifts)};
}

std::optional<Centred> made_narrow(Value value, std::optional<int64_t> axis, ConstantExpressions& constants) {
  if (const auto already = centred(value, axis))
    return already;
  const auto shifted = less_constant(value, axis, constants);
  return shifted ? shifted : narrowed(value, axis, constants);
}

// As `centred` finds it.
Value widened(const Centred& centred, std::optional<int64_t> axis) {
  const Value wide = cast(centred.integers, DType::I32);
  if (!centred.zero_point)
    return wide;
  const Value zero = cast(centred.zero_point, DType::I32);
  const bool is_vector = zero.rank() == 1 && axis && *axis + 1 < wide.rank();
  return wide - (is_vector ? unsqueeze(zero, axes_between(1, wide.rank() - *axis)) : zero);
}

bool is_integer_product(const Node& node) {
  return (node.is("conv") || node.is("matmul")) && node.result().dtype() == DType::I32;
}

}  // namespace

std::optional<OnnxCall> spell_integer_product(const Node& node) {
  if (!is_integer_product(node))
    return std::nullopt;
  const auto a = centred(node.in(left(node)), std::nullopt),
             b = centred(node.in(right(node)), channel_axis(node));
  auto call = a && b ? call_in_onnx(node) : std::nullopt;
  if (!call)
    return std::nullopt;
  call->name = node.is("conv") ? "ConvInteger" : "MatMulInteger";
  call->inputs = {{a->integers}, {b->integers}, {a->zero_point}, {b->zero_point}};
  return call;
}

Value with_narrow_operands(const Node& node, ConstantExpressions& constants) {
  if (!is_integer_product(node) || spell_integer_product(node) || !call_in_onnx(node))
    return {};
  const auto axis = channel_axis(node);
  const auto a = made_narrow(node.in(left(node)), std::nullopt, constants);
  const auto b = a ? made_narrow(node.in(right(node)), axis, constants) : std::nullopt;
  if (!b)
    return {};
  return node.graph()
      .create(node.op(), {{left(node), widened(*a, std::nullopt)}, {right(node), widened(*b, axis)}},
              node.attributes())
      ->result();
}

}  // namespace tenon::onnx
