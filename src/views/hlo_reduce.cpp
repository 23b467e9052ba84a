#include "views/hlo_reduce.h"

#include <algorithm>
#include <cmath>

#include "tensor/wide.h"
#include "views/hlo_types.h"

namespace tenon {
namespace {

using Axes = std::vector<int64_t>;

// Zero or one, or the least or greatest value of the dtype: infinite only where it has infinities.
Tensor start_value(DType dtype, double wanted) {
  if (dtype == DType::Bool)
    return filled(dtype, {}, wanted > 0 ? 1 : 0);
  const Tensor natural = filled(dtype, {}, wanted);
  if (is_float(dtype) && as_double(natural) == wanted)
    return natural;
  return narrow<double>(dtype, {}, std::vector<double>{wanted}, Overflow::Saturate);
}

Axes from_the_front(Axes axes, int64_t rank) {
  for (int64_t& axis : axes)
    axis = axis < 0 ? axis + rank : axis;
  return axes;
}

// What is left of a tensor when the axes go.
Type reduced_type(const Type& type, const Axes& axes) {
  const auto& [dtype, shape] = type.as_tensor();
  std::vector<Dim> dims;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      dims.push_back(shape[i]);
  return Type::tensor(dtype, dims);
}

// `x`, of that type, reduced along axes, which go.
std::string reduce(HloComputation& out, const std::string& x, const Type& type, const Axes& axes,
                   std::string_view instruction, double start) {
  const DType dtype = type.as_tensor().dtype;
  return out.emit("reduce", reduced_type(type, axes),
                  fmt::format("reduce({}, {} {}), dimensions={}, to_apply={}", x,
                              hlo_type(Type::tensor(dtype, {})), hlo_constant(start_value(dtype, start)),
                              hlo_list(axes), out.module().scalar_computation(instruction, dtype)));
}

void define_reduced(HloComputation& out, const Node& node, std::string reduced) {
  if (node.attr("keep_dims"))
    reduced = out.emit("reshape", node.result().type(), fmt::format("reshape({})", reduced));
  out.define(node.result(), std::move(reduced));
}

struct Reduction {
  std::string_view instruction;
  double start;
};

void write_reduction(HloComputation& out, const Node& node, const Reduction& reduction) {
  const Value x = node.in("x");
  const Axes axes = from_the_front(node.attr("axes"), x.rank());
  define_reduced(out, node, reduce(out, out.use(x), x.type(), axes, reduction.instruction, reduction.start));
}

// The sum divided by the number of elements, which must be known.
bool write_mean(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const Axes axes = from_the_front(node.attr("axes"), x.rank());
  Dim count = 1;
  for (const int64_t axis : axes)
    count = count * x.dim(axis);
  if (!count.is_constant())
    return false;
  const Type type = reduced_type(x.type(), axes);
  const std::string sum = reduce(out, out.use(x), x.type(), axes, "add", 0);
  const std::string divisor = hlo_splat(static_cast<double>(*count.constant()), type);
  define_reduced(out, node, out.emit("divide", type, fmt::format("divide({}, {})", sum, divisor)));
  return true;
}

// exp(x - max) / sum(exp(x - max))
void write_softmax(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const Type& type = x.type();
  const Axes axes = from_the_front({node.attr("axis").as<int64_t>()}, x.rank());
  Axes others;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axes[0])
      others.push_back(i);
  const std::string operand = out.use(x);
  const auto spread = [&](const std::string& name) {
    return out.emit("bcast", type, fmt::format("broadcast({}), dimensions={}", name, hlo_list(others)));
  };
  const std::string greatest = spread(reduce(out, operand, type, axes, "maximum", -HUGE_VAL));
  const std::string shifted = out.emit("subtract", type, fmt::format("subtract({}, {})", operand, greatest));
  const std::string powers = out.emit("exponential", type, fmt::format("exponential({})", shifted));
  const std::string sums = spread(reduce(out, powers, type, axes, "add", 0));
  out.define(node.result(), out.emit("divide", type, fmt::format("divide({}, {})", powers, sums)));
}

}  // namespace

bool write_hlo_reduction(HloComputation& out, const Node& node) {
  static const std::map<std::string_view, Reduction> reductions = {{"reduce_sum", {"add", 0}},
                                                                   {"reduce_prod", {"multiply", 1}},
                                                                   {"reduce_max", {"maximum", -HUGE_VAL}},
                                                                   {"reduce_min", {"minimum", HUGE_VAL}}};
  if (const auto it = reductions.find(node.op().name); it != reductions.end()) {
    write_reduction(out, node, it->second);
    return true;
  }
  if (node.is("reduce_mean"))
    return write_mean(out, node);
  if (node.is("softmax")) {
    write_softmax(out, node);
    return true;
  }
  return false;
}

}  // namespace tenon
