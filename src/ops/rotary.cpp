#include "ops/rotary.h"

#include "ir/size_condition.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value x = n.in("x"), cos = n.in("cos"), sin = n.in("sin");
  if (x.rank() != 4)
    throw operand_error(n, "x must have rank 4: batch, heads, sequence, size");
  if (cos.rank() != 3 || sin.rank() != 3)
    throw operand_error(n, "cos and sin must have rank 3: batch, sequence, half the numbers that turn");
  const std::optional<Shape> angles = broadcast(cos.shape(), sin.shape());
  if (!angles || provably_different(cos.dim(2), sin.dim(2)))
    throw operand_error(n, "cos and sin must have the same shape");
  const Dim wanted[] = {x.dim(0), x.dim(2)};
  for (int64_t axis = 0; axis < 2; ++axis)
    for (Value angle : {cos, sin})
      if (!may_fill(angle.dim(axis), wanted[axis]))
        throw operand_error(n, "cos and sin do not broadcast to the batch and sequence of x");
  assume_at_most(cos.dim(2), floor_div(x.dim(3), 2));
  if (const auto half = cos.dim(2).constant(), size = x.dim(3).constant(); half && size && *half > *size / 2)
    throw operand_error(n, fmt::format("{} pairs do not fit into the {} numbers of each x", *half, *size));
  return {x.type()};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  if (x.rank() != 4 || c.in("cos").rank() != 3)
    throw user_error("rotary: x and cos must have rank 4 and 3, not {} and {}", x.rank(), c.in("cos").rank());
  const int64_t heads = x.extent(1), sequence = x.extent(2), size = x.extent(3), half = c.in("cos").extent(2);
  if (x.count() == 0)
    return {x};
  if (half > size / 2)
    throw user_error("rotary: {} pairs do not fit into the {} numbers of each x", half, size);
  const bool interleaved = c.attr("interleaved");
  const Extents angles = {x.extent(0), sequence, half};
  const auto read = [&](std::string_view name) {
    const Tensor& angle = c.in(name);
    if (angle.rank() != 3 || angle.extent(2) != half)
      throw user_error("rotary: {} has the shape [{}], but [{}] was wanted", name,
                       fmt::join(angle.extents(), ","), fmt::join(angles, ","));
    return read_broadcast(c, name, angles);
  };
  const std::vector<double> cos = read("cos"), sin = read("sin");
  std::vector<double> values = widen<double>(x);
  double* token = values.data();
  for (int64_t row = 0; row < x.count() / size; ++row, token += size) {
    const int64_t batch = row / sequence / heads, position = row % sequence;
    for (int64_t i = 0; i < half; ++i) {
      const auto at = static_cast<size_t>((batch * sequence + position) * half + i);
      double& first = token[interleaved ? 2 * i : i];
      double& second = token[interleaved ? 2 * i + 1 : half + i];
      const double turned = cos[at] * first - sin[at] * second;
      second = sin[at] * first + cos[at] * second;
      first = turned;
    }
  }
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

// The part of x from `start` to before `end`, in steps, along its last axis.
Value part(Value x, Value start, Value end, int64_t step = 1) {
  return slice(x, start, end, {3}, step == 1 ? Value() : int_vector(x.graph(), {step}));
}

std::vector<Value> decompose(const Node& n) {
  const Value x = n.in("x"), cos = unsqueeze(n.in("cos"), {1}), sin = unsqueeze(n.in("sin"), {1});
  const Value half = size_along(cos, 3), both = half + half, size = size_along(x, 3);
  const Value zero = int_vector(n.graph(), {0}), one = int_vector(n.graph(), {1});
  const bool interleaved = n.attr("interleaved");
  const Value first = interleaved ? part(x, zero, both, 2) : part(x, zero, half);
  const Value second = interleaved ? part(x, one, both, 2) : part(x, half, both);
  const Value turned_first = cos * first - sin * second, turned_second = sin * first + cos * second;
  const Value rest = part(x, both, size);
  if (!interleaved)
    return {concat({turned_first, turned_second, rest}, 3)};
  const Value pairs = concat({unsqueeze(turned_first, {4}), unsqueeze(turned_second, {4})}, 4);
  return {concat({reshape(pairs, shape_of(part(x, zero, both))), rest}, 3)};
}

}  // namespace

const Family& rotary_ops() {
  static const Family ops = {
      {.name = "rotary",
       .doc = "rotary position embedding: pairs of numbers turned by the angles of their position",
       .operands = {{"x", "T"}, {"cos", "T"}, {"sin", "T"}},
       .attributes = {{"interleaved", AttributeKind::Bool,
                       "whether the numbers of a pair stand side by side; else half the turned ones apart",
                       false}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer,
       .eval = eval,
       .decompose = decompose},
  };
  return ops;
}

Value rotary(Value x, Value cos, Value sin, bool interleaved) {
  return x.graph()
      .create("rotary", {{"x", x}, {"cos", cos}, {"sin", sin}}, {{"interleaved", interleaved}})
      ->result();
}

}  // namespace tenon
