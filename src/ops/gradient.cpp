#include "ops/gradient.h"

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/sort.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

Value filled_like(Value x, double value) { return fill(shape_of(x), filled(x.dtype(), {}, value)); }

// The same where it is dynamic which sizes of `like` are 1. Ranks are equal.
Value sum_over_differing_axes(Value gradient, Value like) {
  const Value wanted = shape_of(like);
  const Value differing = logical_not(equal(shape_of(gradient), wanted));
  const Value axes = reshape(nonzero(differing), {-1});
  Graph& graph = gradient.graph();
  const Value sum =
      graph.create("reduce_sum", {{"x", gradient}, {"axes", axes}}, {{"keep_dims", true}})->result();
  return reshape(sum, wanted);
}

}  // namespace

Value GradContext::dy_or_zeros(int64_t index) const { return dy(index) ? dy(index) : zeros_like(out(index)); }

bool GradContext::wants(std::string_view name) const {
  const auto [first, count] = node_.segment(name);
  for (size_t i = first; i < first + count; ++i)
    if (wanted_[i])
      return true;
  return false;
}

Value GradContext::repeat(const std::vector<Operand>& instead) const {
  std::vector<Operand> operands = instead;
  const auto keep = [&](std::string_view name) {
    if (std::ranges::find(instead, name, &Operand::name) == instead.end())
      operands.emplace_back(name, node_.ins(name));
  };
  for (const OperandDecl& decl : node_.op().operands)
    keep(decl.name);
  for (std::string_view late : node_.late_names())
    keep(late);
  return graph().create(node_.op(), std::move(operands), node_.attributes())->result();
}

UnsupportedError GradContext::decline(const std::string& reason) const {
  return unsupported("{}: {}", node_.op().name, reason);
}

std::vector<Operand> no_gradient(const GradContext&) { return {}; }

bool is_differentiable(const Type& type) {
  return type.is_tensor() ? is_float(type.as_tensor().dtype) : is_differentiable(type.element());
}

Value sum_to(Value gradient, Value like) {
  if (gradient.shape() == like.shape() && like.shape().ranked() &&
      std::ranges::none_of(like.shape().dims(), [](const Dim& dim) { return dim.is_unknown(); }))
    return gradient;
  if (!gradient.shape().ranked() || !like.shape().ranked())
    throw unsupported("an operand of unknown rank has no gradient");
  const int64_t leading = gradient.rank() - like.rank();
  CHECK(leading >= 0, "a gradient of {} for an operand of {}", gradient.type(), like.type());
  Axes axes(static_cast<size_t>(leading));
  std::iota(axes.begin(), axes.end(), 0);
  if (leading > 0)
    gradient = reduce_sum(gradient, axes);
  axes.clear();
  for (int64_t i = 0; i < like.rank(); ++i) {
    if (provably_equal(gradient.dim(i), like.dim(i)))
      continue;
    if (like.dim(i) != Dim(1))
      return sum_over_differing_axes(gradient, like);
    axes.push_back(i);
  }
  return axes.empty() ? gradient : reduce_sum(gradient, axes, Keep::Dims);
}

Value zeros_like(Value x) { return filled_like(x, 0); }
Value ones_like(Value x) { return filled_like(x, 1); }

Value keep_where(Value condition, Value x) { return where(condition, x, scalar(x.graph(), x.dtype(), 0)); }

Value count_along(Value x, const std::vector<int64_t>& axes) {
  Dim count = 1;
  for (int64_t axis : axes)
    count = count * x.dim(axis);
  if (count.is_constant())
    return scalar(x.graph(), x.dtype(), static_cast<double>(*count.constant()));
  std::vector<Value> sizes;
  for (int64_t axis : axes)
    sizes.push_back(size_along(x, axis));
  return cast(reduce_prod(concat(sizes, 0), {0}), x.dtype());
}

Value as_rows(Value x) {
  if (x.rank() == 2)
    return x;
  if (const auto columns = x.dim(-1).constant())
    return reshape(x, {-1, *columns});
  return reshape(x, concat({int_vector(x.graph(), {-1}), size_along(x, -1)}, 0));
}

Value cut_to(Value x, Value like, int64_t axis) {
  if (provably_equal(x.dim(axis), like.dim(axis)))
    return x;
  return slice(x, int_vector(x.graph(), {0}), size_along(like, axis), {axis});
}

Value positions_in(Value x) {
  Graph& graph = x.graph();
  const Value shape = shape_of(x);
  const auto number = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
  return reshape(range(number(0), reduce_prod(shape, {0}), number(1)), shape);
}

Value add_at_positions(Value gradient, Value positions, Value x) {
  const Value flat = reshape(zeros_like(x), {-1});
  return reshape(scatter_elements(flat, reshape(positions, {-1}), reshape(gradient, {-1}), 0, "add"),
                 shape_of(x));
}

}  // namespace tenon
