#include "views/hlo_reduce.h"

#include <algorithm>
#include <cmath>

#include "tensor/wide.h"
#include "views/axes.h"
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
                  fmt::format("reduce({}, {}), dimensions={}, to_apply={}", x, hlo_start(dtype, start),
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
  const Axes axes = all_from_the_front(node.attr("axes"), x.rank());
  define_reduced(out, node, reduce(out, out.use(x), x.type(), axes, reduction.instruction, reduction.start));
}

// The sum divided by the number of elements, which must be known.
bool write_mean(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const Axes axes = all_from_the_front(node.attr("axes"), x.rank());
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
  const Axes axes = {from_the_front(node.attr("axis").as<int64_t>(), x.rank())};
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

// (x - mean) / sqrt(variance + epsilon) along some axes, the number of whose elements must be known.
std::optional<std::string> normalise(HloComputation& out, const Node& node, const Axes& axes) {
  const Value x = node.in("x");
  const Type& type = x.type();
  Axes others;
  Dim count = 1;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (std::find(axes.begin(), axes.end(), i) == axes.end())
      others.push_back(i);
    else
      count = count * x.dim(i);
  if (!count.is_constant())
    return std::nullopt;
  const Type reduced = reduced_type(type, axes);
  const auto call = [&](std::string_view instruction, const Type& wanted, const std::string& a,
                        const std::string& b) {
    return out.emit(instruction, wanted, fmt::format("{}({}, {})", instruction, a, b));
  };
  const auto mean = [&](const std::string& name) {
    return call("divide", reduced, reduce(out, name, type, axes, "add", 0),
                hlo_splat(static_cast<double>(*count.constant()), reduced));
  };
  const auto spread = [&](const std::string& name) {
    return out.emit("bcast", type, fmt::format("broadcast({}), dimensions={}", name, hlo_list(others)));
  };
  const std::string operand = out.use(x);
  const std::string centred = call("subtract", type, operand, spread(mean(operand)));
  const std::string variance = mean(call("multiply", type, centred, centred));
  const std::string shifted = call("add", reduced, variance, hlo_splat(node.attr("epsilon"), reduced));
  const std::string scale = out.emit("rsqrt", reduced, fmt::format("rsqrt({})", shifted));
  return call("multiply", type, centred, spread(scale));
}

// `spread` gives a scale or bias the shape of x.
template <class Spread>
void scale_and_shift(HloComputation& out, const Node& node, std::string y, const Spread& spread) {
  const Type& type = node.result().type();
  if (node.has("scale"))
    y = out.emit("multiply", type, fmt::format("multiply({}, {})", y, spread(node.in("scale"))));
  if (node.has("bias"))
    y = out.emit("add", type, fmt::format("add({}, {})", y, spread(node.in("bias"))));
  out.define(node.result(), std::move(y));
}

// The axes from `first` on.
Axes axes_from(int64_t first, int64_t rank) {
  Axes axes;
  for (int64_t i = from_the_front(first, rank); i < rank; ++i)
    axes.push_back(i);
  return axes;
}

bool write_layer_norm(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const auto y = normalise(out, node, axes_from(node.attr("axis"), x.rank()));
  if (y)
    scale_and_shift(out, node, *y, [&](Value v) { return out.use_as(v, x.type()); });
  return bool(y);
}

bool write_instance_norm(HloComputation& out, const Node& node) {
  const Value x = node.in("x");
  const auto y = normalise(out, node, axes_from(2, x.rank()));
  if (y)
    scale_and_shift(out, node, *y, [&](Value v) {
      return out.emit("bcast", x.type(), fmt::format("broadcast({}), dimensions={{1}}", out.use(v)));
    });
  return bool(y);
}

}  // namespace

std::string hlo_start(DType dtype, double wanted) {
  return fmt::format("{} {}", hlo_type(Type::tensor(dtype, {})), hlo_constant(start_value(dtype, wanted)));
}

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
  if (node.is("layer_norm"))
    return write_layer_norm(out, node);
  if (node.is("instance_norm"))
    return write_instance_norm(out, node);
  if (node.is("softmax")) {
    write_softmax(out, node);
    return true;
  }
  return false;
}

}  // namespace tenon
