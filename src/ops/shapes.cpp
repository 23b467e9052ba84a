#include "ops/shapes.h"

#include <algorithm>

#include "base/error.h"
#include "ir/size_condition.h"

namespace tenon {

UserError operand_error(const Node& n, const std::string& message) {
  std::string text = fmt::format("{}: {}", n.op().name, message);
  for (const OperandDecl& decl : n.op().operands)
    for (Value value : n.ins(decl.name))
      text += fmt::format("\n  {}{}{}: {}", decl.name, value.name().empty() ? "" : "  %", value.name(),
                          value.type());
  return UserError(text);
}

// Whether a broadcast of both gives b, if it runs at all: a is no more than b, and is 1 only where b is, as
// the first n of 512 elements are; or it is 1 wherever b is not 0, as the last of n elements is.
static bool broadcasts_to(const Dim& a, const Dim& b) {
  return provably_equal(a, min(a, b)) && (min(a, 2) == min(b, 2) || a == min(b, 1));
}

std::optional<Dim> broadcast(const Dim& a, const Dim& b) {
  if (a == b || b == Dim(1))
    return a;
  if (a == Dim(1))
    return b;
  if (a.is_constant() && b.is_constant())
    return std::nullopt;
  assume_broadcast(a, b);
  // One is a number above 1, or 0: the other must be the same, or 1.
  if (a.is_constant())
    return a;
  if (b.is_constant())
    return b;
  if (broadcasts_to(a, b))
    return b;
  if (broadcasts_to(b, a))
    return a;
  return Dim();
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int64_t rank = std::max(a.rank(), b.rank());
  std::vector<Dim> dims;
  for (int64_t i = -rank; i < 0; ++i) {
    const std::optional<Dim> dim = broadcast(-i > a.rank() ? Dim(1) : a[i], -i > b.rank() ? Dim(1) : b[i]);
    if (!dim)
      return std::nullopt;
    dims.push_back(*dim);
  }
  return Shape(dims);
}

bool provably_different(const Dim& a, const Dim& b) {
  const Dim gap = a - b;
  if (!gap.is_constant())
    assume_equal(a, b);
  return gap.is_constant() && gap != Dim(0);
}

bool may_fill(const Dim& a, const Dim& b) {
  const Dim gap = a - b;
  assume_fills(a, b);
  return a == Dim(1) || !gap.is_constant() || gap == Dim(0);
}

Shape broadcast_operands(const Node& n, const std::vector<Value>& values) {
  Shape shape;
  for (Value value : values) {
    const std::optional<Shape> wider = broadcast(shape, value.shape());
    if (!wider)
      throw operand_error(n, "the shapes do not broadcast");
    shape = *wider;
  }
  return shape;
}

std::optional<std::vector<Dim>> map_known_dims(const Node& n,
                                               const std::function<Dim(std::span<const Dim>)>& formula) {
  std::vector<std::vector<Dim>> operands;
  size_t count = 1;
  for (Value value : n.operands()) {
    auto known = value.known_dims();
    if (!known || value.rank() > 1 || (known->size() != count && known->size() != 1 && count != 1))
      return std::nullopt;
    if (known->size() != 1)
      count = known->size();
    operands.push_back(std::move(*known));
  }
  std::vector<Dim> dims, elements(operands.size());
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < operands.size(); ++k)
      elements[k] = operands[k][operands[k].size() == 1 ? 0 : i];
    dims.push_back(formula(elements));
  }
  return dims;
}

int64_t checked_axis(std::string_view op, int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    throw user_error("{}: axis {} is out of range for a tensor of rank {}", op, axis, rank);
  return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> checked_axes(std::string_view op, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> checked;
  for (int64_t axis : axes)
    checked.push_back(checked_axis(op, axis, rank));
  std::sort(checked.begin(), checked.end());
  if (const auto twice = std::adjacent_find(checked.begin(), checked.end()); twice != checked.end())
    throw user_error("{}: axis {} is named twice", op, *twice);
  return checked;
}

namespace {

std::optional<int64_t> constant_length(Value vector) {
  return vector.shape().ranked() && vector.rank() == 1 ? vector.dim(0).constant() : std::nullopt;
}

std::string too_many_axes(std::string_view operand, int64_t length) {
  return fmt::format("{}: a vector with an element per axis has {} of them; a tensor has at most {} axes",
                     operand, length, kMostAxes);
}

}  // namespace

std::optional<int64_t> known_length(std::string_view op, std::string_view operand, Value vector) {
  const auto length = constant_length(vector);
  if (length > kMostAxes)
    throw user_error("{}: {}", op, too_many_axes(operand, *length));
  return length;
}

std::optional<int64_t> known_length(const Node& n, std::string_view operand) {
  const auto length = constant_length(n.in(operand));
  if (length > kMostAxes)
    throw operand_error(n, too_many_axes(operand, *length));
  return length;
}

Dim known_number(const Node& n, std::string_view name) {
  const Value value = n.in(name);
  const Dim count = value.shape().ranked() ? value.shape().element_count() : Dim();
  assume_equal(count, 1);
  if (count.is_constant() && count != Dim(1))
    throw operand_error(n, fmt::format("{} must be one number", name));
  const auto dims = value.known_dims();
  return dims && dims->size() == 1 ? dims->front() : Dim();
}

void check_sizes(const Node& n, std::string_view name, std::span<const Dim> sizes) {
  for (size_t i = 0; i < sizes.size(); ++i)
    check_size(n, fmt::format("{}[{}]", name, i), sizes[i]);
}

void check_size(const Node& n, std::string_view name, const Dim& size) {
  assume_at_most(0, size);
  if (size.is_constant() && *size.constant() < 0)
    throw operand_error(n, fmt::format("{} is {}", name, size));
}

void check_shared_heads(const Node& n, const Dim& heads, const Dim& key_heads) {
  assume_multiple(heads, key_heads);
  if (!heads.is_constant() || !key_heads.is_constant())
    return;
  if (key_heads == Dim(0) ? heads != Dim(0) : *heads.constant() % *key_heads.constant() != 0)
    throw operand_error(n, fmt::format("{} query heads cannot share {} key heads evenly", heads, key_heads));
}

std::vector<Dim> vector_dims(const Node& n, std::string_view name, size_t count) {
  const Value vector = n.in(name);
  const auto wanted = static_cast<int64_t>(count);
  if (vector.shape().ranked() && vector.rank() == 1)
    assume_equal(vector.dim(0), wanted);
  if (vector.shape().ranked() && (vector.rank() != 1 || vector.dim(0).constant().value_or(wanted) != wanted))
    throw operand_error(n, fmt::format("{} must be a vector of {} numbers", name, count));
  return vector.known_dims().value_or(std::vector<Dim>(count));
}

Types same_as_x(const Node& n) { return {n.in("x").type()}; }

}  // namespace tenon
