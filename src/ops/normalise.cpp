#include "ops/normalise.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ir/size_condition.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lanes.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon {
namespace {

// --- what they share ---

// A scale or bias may be smaller than x, but must not make the result larger.
void check_broadcasts_to_x(const Node& n, std::string_view operand) {
  const Value x = n.in("x"), value = n.in(operand);
  if (!value)
    return;
  const auto shape = value.rank() > x.rank() ? std::nullopt : broadcast(x.shape(), value.shape());
  for (int64_t i = -value.rank(); shape && i < 0; ++i) {
    assume_fills(value.dim(i), x.dim(i));
    if (x.dim(i) == Dim(1) && value.dim(i).is_constant() && value.dim(i) != Dim(1))
      throw operand_error(n, fmt::format("{} does not broadcast to x", operand));
  }
  if (!shape)
    throw operand_error(n, fmt::format("{} does not broadcast to x", operand));
}

// The channels are dimension 1; a vector is a batch of one channel.
Dim channels(const Shape& shape) { return shape.rank() == 1 ? Dim(1) : shape[1]; }
int64_t channels(const Extents& extents) { return extents.size() == 1 ? 1 : extents[1]; }

Types infer_per_channel(const Node& n) {
  const Value x = n.in("x");
  if (x.rank() == 0)
    throw operand_error(n, "x has no batch dimension");
  const Dim wanted = channels(x.shape());
  for (const OperandDecl& decl : n.op().operands) {
    const Value value = n.in(decl.name);
    if (decl.name == "x" || !value)
      continue;
    if (value.rank() != 1 || provably_different(value.dim(0), wanted))
      throw operand_error(
          n, fmt::format("{} must have one element for each channel of x: [{}]", decl.name, wanted));
  }
  return {x.type()};
}

// The elements of a per-channel operand.
std::vector<double> per_channel(const Call& c, std::string_view operand) {
  const Tensor& x = c.in("x");
  std::vector<double> values = widen<double>(c.in(operand));
  if (x.rank() == 0)
    throw user_error("{}: x has no batch dimension", c.node().op().name);
  if (static_cast<int64_t>(values.size()) != channels(x.extents()))
    throw user_error("{}: {} has {} elements, but x is {}, with {} channels", c.node().op().name, operand,
                     values.size(), describe(x.dtype(), x.extents()), channels(x.extents()));
  return values;
}

// value = formula(value, element of operand), where the operand broadcasts to `extents`.
template <class F>
void combine(std::string_view op, std::vector<double>& values, const Extents& extents, const Tensor& operand,
             F&& formula) {
  if (broadcast_extents(op, extents, operand.extents()) != extents)
    throw user_error("{}: the shape [{}] does not broadcast to [{}]", op, fmt::join(operand.extents(), ","),
                     fmt::join(extents, ","));
  const std::vector<double> elements = widen<double>(operand);
  auto value = values.begin();
  walk<1>(extents, {broadcast_strides(operand.extents(), extents)}, [&](const std::array<int64_t, 1>& at) {
    *value = formula(*value, elements[static_cast<size_t>(at[0])]);
    ++value;
  });
}

constexpr auto product = [](double value, double scale) { return value * scale; };
constexpr auto sum = [](double value, double bias) { return value + bias; };

// Calls f for each run of consecutive values that the axes from `axis` on make up, and its number.
template <class F>
void for_each_run(std::vector<double>& values, const Extents& extents, int64_t axis, F&& f) {
  if (values.empty())
    return;
  const auto length = static_cast<size_t>(element_count({extents.begin() + axis, extents.end()}));
  for (size_t start = 0; start < values.size(); start += length)
    f(std::span(values).subspan(start, length), start / length);
}

// (v - mean) / sqrt(variance + epsilon)
void standardise(std::span<double> run, double epsilon) {
  double total = 0, squares = 0;
  for (double value : run)
    total += value;
  const double mean = total / static_cast<double>(run.size());
  for (double value : run)
    squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(run.size()) + epsilon);
  for (double& value : run)
    value = (value - mean) / deviation;
}

// v / sqrt(mean of v² + epsilon)
void divide_by_root_mean_square(std::span<double> run, double epsilon) {
  double squares = 0;
  for (double value : run)
    squares += value * value;
  const double root = std::sqrt(squares / static_cast<double>(run.size()) + epsilon);
  for (double& value : run)
    value /= root;
}

// --- layer_norm and rms_norm ---

Types infer_last_axes(const Node& n) {
  checked_axis(n.op().name, n.attr("axis"), n.in("x").rank());
  for (const OperandDecl& decl : n.op().operands)
    check_broadcasts_to_x(n, decl.name);
  return {n.in("x").type()};
}

template <auto normalise_run>
Data eval_last_axes(const Call& c) {
  const Tensor& x = c.in("x");
  const std::string_view op = c.node().op().name;
  const double epsilon = c.attr("epsilon");
  const int64_t axis = checked_axis(op, c.attr("axis"), x.rank());
  std::vector<double> values = widen<double>(x);
  for_each_run(values, x.extents(), axis,
               [&](std::span<double> run, size_t) { normalise_run(run, epsilon); });
  if (c.has("scale"))
    combine(op, values, x.extents(), c.in("scale"), product);
  if (c.node().op().find_operand("bias") != nullptr && c.has("bias"))
    combine(op, values, x.extents(), c.in("bias"), sum);
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

// --- batch_norm, group_norm and instance_norm ---

Data eval_batch_norm(const Call& c) {
  const Tensor& x = c.in("x");
  const double epsilon = c.attr("epsilon");
  const std::vector<double> scale = per_channel(c, "scale"), bias = per_channel(c, "bias"),
                            mean = per_channel(c, "mean"), variance = per_channel(c, "variance");
  std::vector<double> values = widen<double>(x);
  for_each_run(values, x.extents(), std::min<int64_t>(x.rank(), 2),
               [&](std::span<double> run, size_t number) {
                 const size_t i = number % scale.size();
                 const double deviation = std::sqrt(variance[i] + epsilon);
                 for (double& value : run)
                   value = (value - mean[i]) / deviation * scale[i] + bias[i];
               });
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

// Standardises the groups, then scales and shifts the channels.
Data normalise_groups(const Call& c, int64_t groups) {
  const Tensor& x = c.in("x");
  const double epsilon = c.attr("epsilon");
  const std::vector<double> scale = per_channel(c, "scale"), bias = per_channel(c, "bias");
  std::vector<double> values = widen<double>(x);
  if (!values.empty())
    for_each_run(values, {x.extent(0) * groups, x.count() / x.extent(0) / groups}, 1,
                 [&](std::span<double> run, size_t) { standardise(run, epsilon); });
  for_each_run(values, x.extents(), std::min<int64_t>(x.rank(), 2),
               [&](std::span<double> run, size_t number) {
                 const size_t i = number % scale.size();
                 for (double& value : run)
                   value = value * scale[i] + bias[i];
               });
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

Data eval_instance_norm(const Call& c) {
  return normalise_groups(c, static_cast<int64_t>(per_channel(c, "scale").size()));
}

// How many groups there are, after checking that they divide the channels.
int64_t checked_groups(int64_t groups, int64_t channel_count) {
  if (groups < 1)
    throw user_error("group_norm: groups is {}, but must be at least 1", groups);
  if (channel_count % groups != 0)
    throw user_error("group_norm: {} channels do not divide into {} groups", channel_count, groups);
  return groups;
}

Types infer_group_norm(const Node& n) {
  const Types types = infer_per_channel(n);
  const Dim count = channels(n.in("x").shape());
  checked_groups(n.attr("groups"), count.constant().value_or(0));
  assume_multiple(count, n.attr("groups").as<int64_t>());
  return types;
}

Data eval_group_norm(const Call& c) {
  return normalise_groups(
      c, checked_groups(c.attr("groups"), static_cast<int64_t>(per_channel(c, "scale").size())));
}

// --- layer_norm and rms_norm: gradients and decompositions ---

// The axes that are normalised over.
Axes last_axes(const Node& n) {
  const int64_t rank = n.in("x").rank();
  Axes axes;
  for (int64_t axis = checked_axis(n.op().name, n.attr("axis"), rank); axis < rank; ++axis)
    axes.push_back(axis);
  return axes;
}

Value inverse_root(Value mean_square, double epsilon) { return 1.0 / sqrt(mean_square + epsilon); }

// What is normalised, before scale and bias, and what it was multiplied with.
struct Normalised {
  Value y, factor;
};
Normalised standardised(const Node& n) {
  const Value centred = n.in("x") - reduce_mean(n.in("x"), last_axes(n), Keep::Dims);
  const Value variance = reduce_mean(centred * centred, last_axes(n), Keep::Dims);
  const Value factor = inverse_root(variance, n.attr("epsilon"));
  return {centred * factor, factor};
}
Normalised with_unit_mean_square(const Node& n) {
  const Value x = n.in("x");
  const Value factor = inverse_root(reduce_mean(x * x, last_axes(n), Keep::Dims), n.attr("epsilon"));
  return {x * factor, factor};
}

Value scaled(const Node& n, Value y) { return n.has("scale") ? y * n.in("scale") : y; }

std::vector<Value> decompose_layer_norm(const Node& n) {
  const Value y = scaled(n, standardised(n).y);
  return {n.has("bias") ? y + n.in("bias") : y};
}
std::vector<Value> decompose_rms_norm(const Node& n) { return {scaled(n, with_unit_mean_square(n).y)}; }

// With z the normalised x and g = dy · scale: what of g changes the mean or the variance of x is taken out.
std::vector<Operand> grad_layer_norm(const GradContext& n) {
  const auto [z, factor] = standardised(n.node());
  const Axes axes = last_axes(n.node());
  const Value g = scaled(n.node(), n.dy());
  const Value dx = factor * (g - reduce_mean(g, axes, Keep::Dims) - z * reduce_mean(g * z, axes, Keep::Dims));
  return {{"x", dx},
          {"scale", n.has("scale") ? n.dy() * z : Value()},
          {"bias", n.has("bias") ? n.dy() : Value()}};
}
std::vector<Operand> grad_rms_norm(const GradContext& n) {
  const auto [z, factor] = with_unit_mean_square(n.node());
  const Value g = scaled(n.node(), n.dy());
  const Value dx = factor * (g - z * reduce_mean(g * z, last_axes(n.node()), Keep::Dims));
  return {{"x", dx}, {"scale", n.has("scale") ? n.dy() * z : Value()}};
}

// --- batch_norm, group_norm and instance_norm: gradients and decompositions ---

Value converted(Value x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }

// A value per channel, in a shape that broadcasts to x and of its dtype. Reshaping refuses what has more
// elements than x has channels, or fewer.
Value as_channels(Value x, Value per_channel) {
  std::vector<int64_t> shape(static_cast<size_t>(std::max<int64_t>(x.rank() - 1, 1)), 1);
  const Dim count = channels(x.shape());
  if (!provably_equal(count, per_channel.dim(0)) && !count.is_constant()) {
    const std::vector<int64_t> ones(shape.begin() + 1, shape.end());
    const Value whole = concat({size_along(x, 1), int_vector(x.graph(), ones)}, 0);
    return converted(reshape(per_channel, whole), x.dtype());
  }
  shape.front() = provably_equal(count, per_channel.dim(0)) ? -1 : *count.constant();
  return converted(reshape(per_channel, shape), x.dtype());
}

std::vector<Value> decompose_batch_norm(const Node& n) {
  const Value x = n.in("x");
  const auto channels = [&](std::string_view name) { return as_channels(x, n.in(name)); };
  const Value factor = inverse_root(channels("variance"), n.attr("epsilon"));
  return {(x - channels("mean")) * factor * channels("scale") + channels("bias")};
}

std::vector<Operand> grad_batch_norm(const GradContext& n) {
  const Value x = n.in("x"), dy = n.dy();
  const auto channels = [&](std::string_view name) { return as_channels(x, n.in(name)); };
  const Value factor = inverse_root(channels("variance"), n.attr("epsilon"));
  const Value slope = factor * channels("scale"), centred = x - channels("mean");
  // The sum over all but the channels, in the shape and dtype of a parameter.
  const auto per_channel = [&](Value gradient, std::string_view name) {
    return converted(reshape(sum_to(gradient, slope), shape_of(n.in(name))), n.in(name).dtype());
  };
  return {{"x", dy * slope},
          {"scale", per_channel(dy * centred * factor, "scale")},
          {"bias", per_channel(dy, "bias")},
          {"mean", per_channel(-dy * slope, "mean")},
          {"variance", per_channel(-0.5 * (dy * centred * slope * factor * factor), "variance")}};
}

// Each of `groups` (0: as many as channels) normalised as a row of its own.
std::vector<Value> decompose_groups(const Node& n, int64_t groups) {
  const Value x = n.in("x");
  const Value rows = n.graph()
                         .create("reshape", {{"x", x}, {"shape", int_vector(n.graph(), {0, groups, -1})}},
                                 {{"allow_zero", false}})
                         ->result();
  const Value y = reshape(layer_norm(rows, {}, {}, -1, n.attr("epsilon")), shape_of(x));
  return {y * as_channels(x, n.in("scale")) + as_channels(x, n.in("bias"))};
}
std::vector<Value> decompose_group_norm(const Node& n) { return decompose_groups(n, n.attr("groups")); }
// In the shape that it has: images may lie in another order in memory.
std::vector<Value> decompose_instance_norm(const Node& n) {
  const Value x = n.in("x");
  if (x.rank() < 3)
    return decompose_groups(n, x.rank() == 1 ? 1 : 0);
  const Value y = layer_norm(x, {}, {}, 2, n.attr("epsilon"));
  return {y * as_channels(x, n.in("scale")) + as_channels(x, n.in("bias"))};
}

// --- local_response_norm ---

int64_t checked_size(int64_t size) {
  if (size < 1)
    throw user_error("local_response_norm: size is {}, but must be at least 1", size);
  return size;
}

Types infer_local_response_norm(const Node& n) {
  if (n.in("x").rank() < 2)
    throw operand_error(n, "x has no channels");
  checked_size(n.attr("size"));
  return {n.in("x").type()};
}

// x / (bias + alpha / size · Σ x²)^beta, summed over the channels next to each one. An even window reaches
// one channel further up than down.
Data eval_local_response_norm(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t size = checked_size(c.attr("size"));
  const double alpha = c.attr("alpha"), beta = c.attr("beta"), bias = c.attr("bias");
  const Lanes lanes(x.extents(), checked_axis("local_response_norm", 1, x.rank()));
  const int64_t below = std::min((size - 1) / 2, lanes.length), above = std::min(size / 2, lanes.length);
  const std::vector<double> values = widen<double>(x);
  std::vector<double> y(values.size());
  lanes.for_each([&](size_t start) {
    const auto at = [&](int64_t channel) { return start + static_cast<size_t>(channel * lanes.stride); };
    for (int64_t channel = 0; channel < lanes.length; ++channel) {
      double squares = 0;
      for (int64_t i = std::max<int64_t>(0, channel - below); i <= channel + above && i < lanes.length; ++i)
        squares += values[at(i)] * values[at(i)];
      y[at(channel)] =
          values[at(channel)] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
    }
  });
  return {narrow<double>(x.dtype(), x.extents(), y)};
}

// The channels are the dimension along which a window of a pool slides.
std::vector<Value> decompose_local_response_norm(const Node& n) {
  const Value x = n.in("x");
  if (x.shape().element_count() == Dim(0))
    return {x};  // a pool wants elements to look at
  const int64_t size = checked_size(n.attr("size"));
  const double alpha = n.attr("alpha"), beta = n.attr("beta"), bias = n.attr("bias");
  // Further away than there are channels, there is nothing to sum.
  constexpr int64_t most = 1024;
  if (!x.dim(1).is_constant() && size > most)
    throw unsupported("local_response_norm: the number of channels, {}, is dynamic", size);
  const int64_t reach = x.dim(1).constant().value_or(size);
  const int64_t below = std::min((size - 1) / 2, reach), above = std::min(size / 2, reach);
  const int64_t cells = below + 1 + above;
  const Value one = int_vector(n.graph(), {1});
  const Value rest = reduce_prod(slice(shape_of(x), 0, 2, kToTheEnd), {0}, Keep::Dims);
  const Value columns = reshape(x * x, concat({size_along(x, 0), one, size_along(x, 1), rest}, 0));
  // Where it is dynamic whether there are elements, a place that is not wanted at each end lets the
  // window fit nevertheless.
  const auto& dims = x.shape().dims();
  const int64_t more =
      std::all_of(dims.begin() + 1, dims.end(), [](const Dim& dim) { return dim.is_constant(); }) ? 0 : 1;
  const Value means = n.graph()
                          .create("average_pool", {{"x", columns}},
                                  {{"kernel", Attribute::Ints{cells, 1}},
                                   {"strides", Attribute::Ints{1, 1}},
                                   {"dilations", Attribute::Ints{1, 1}},
                                   {"pads", Attribute::Ints{below, 0, above + more, more}},
                                   {"count_padding", true}})
                          ->result();
  const Value mean = more == 0 ? means : slice(slice(means, 2, 0, -1), 3, 0, -1);
  const double share = static_cast<double>(cells) / static_cast<double>(size);
  return {x / pow(bias + alpha * share * reshape(mean, shape_of(x)), beta)};
}

const AttributeDecl kEpsilon = {"epsilon", AttributeKind::Float, "added to the variance, lest it be 0", 1e-5};
const AttributeDecl kFirstAxis = {"axis", AttributeKind::Int,
                                  "the first axis of those normalised over; the rest follow it", -1};

}  // namespace

const Family& normalise_ops() {
  static const Family ops = {
      {.name = "batch_norm",
       .doc = "(x - mean) / sqrt(variance + epsilon) · scale + bias, all per channel (dimension 1)",
       .operands = {{"x", "T"}, {"scale", "U"}, {"bias", "U"}, {"mean", "V"}, {"variance", "V"}},
       .attributes = {kEpsilon},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}, {"U", Floats}, {"V", Floats}},
       .infer = infer_per_channel,
       .eval = eval_batch_norm,
       .grad = grad_batch_norm,
       .decompose = decompose_batch_norm},
      {.name = "layer_norm",
       .doc = "(x - mean) / sqrt(variance + epsilon) · scale + bias over the last axes",
       .operands = {{"x", "T"}, {"scale", "T", Arity::Optional}, {"bias", "T", Arity::Optional}},
       .attributes = {kFirstAxis, kEpsilon},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer_last_axes,
       .eval = eval_last_axes<standardise>,
       .grad = grad_layer_norm,
       .decompose = decompose_layer_norm},
      {.name = "rms_norm",
       .doc = "x / sqrt(mean(x²) + epsilon) · scale over the last axes",
       .operands = {{"x", "T"}, {"scale", "T", Arity::Optional}},
       .attributes = {kFirstAxis, kEpsilon},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer_last_axes,
       .eval = eval_last_axes<divide_by_root_mean_square>,
       .grad = grad_rms_norm,
       .decompose = decompose_rms_norm},
      {.name = "group_norm",
       .doc =
           "(x - mean) / sqrt(variance + epsilon) over groups of channels, then scale and bias per channel",
       .operands = {{"x", "T"}, {"scale", "T"}, {"bias", "T"}},
       .attributes = {{"groups", AttributeKind::Int, "how many groups the channels are divided into"},
                      kEpsilon},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer_group_norm,
       .eval = eval_group_norm,
       .decompose = decompose_group_norm},
      {.name = "instance_norm",
       .doc = "(x - mean) / sqrt(variance + epsilon) over the spatial axes, then scale and bias per channel",
       .operands = {{"x", "T"}, {"scale", "T"}, {"bias", "T"}},
       .attributes = {kEpsilon},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer_per_channel,
       .eval = eval_instance_norm,
       .decompose = decompose_instance_norm},
      {.name = "local_response_norm",
       .doc = "x / (bias + alpha / size · sum(x²))^beta, summed over the size channels around each",
       .operands = {{"x", "T"}},
       .attributes = {{"size", AttributeKind::Int, "how many channels are summed"},
                      {"alpha", AttributeKind::Float, "the weight of the squares", 1e-4},
                      {"beta", AttributeKind::Float, "the exponent", 0.75},
                      {"bias", AttributeKind::Float, "what the sum is added to", 1.0}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = infer_local_response_norm,
       .eval = eval_local_response_norm,
       .decompose = decompose_local_response_norm},
  };
  return ops;
}

Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance, double epsilon) {
  return x.graph()
      .create("batch_norm",
              {{"x", x}, {"scale", scale}, {"bias", bias}, {"mean", mean}, {"variance", variance}},
              {{"epsilon", epsilon}})
      ->result();
}
Value layer_norm(Value x, Value scale, Value bias, int64_t axis, double epsilon) {
  return x.graph()
      .create("layer_norm", {{"x", x}, {"scale", scale}, {"bias", bias}},
              {{"axis", axis}, {"epsilon", epsilon}})
      ->result();
}
Value rms_norm(Value x, Value scale, int64_t axis, double epsilon) {
  return x.graph()
      .create("rms_norm", {{"x", x}, {"scale", scale}}, {{"axis", axis}, {"epsilon", epsilon}})
      ->result();
}
Value group_norm(Value x, Value scale, Value bias, int64_t groups, double epsilon) {
  return x.graph()
      .create("group_norm", {{"x", x}, {"scale", scale}, {"bias", bias}},
              {{"groups", groups}, {"epsilon", epsilon}})
      ->result();
}
Value instance_norm(Value x, Value scale, Value bias, double epsilon) {
  return x.graph()
      .create("instance_norm", {{"x", x}, {"scale", scale}, {"bias", bias}}, {{"epsilon", epsilon}})
      ->result();
}

}  // namespace tenon
