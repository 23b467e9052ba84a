// normalise.cpp — PyTorch's normalisations.
#include "ops/normalise.h"

#include <limits>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/precision.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

// One number for each channel of x, which are dimension 1.
Value per_channel(Value x, double value) {
  return fill(size_along(x, 1), narrow<double>(float_type(x.dtype()), {}, std::vector<double>{value}));
}

struct Affine {
  Value scale, bias;

  Affine(const NodeView& n, Value x) : scale(n.maybe_tensor("weight")), bias(n.maybe_tensor("bias")) {
    if (!scale)
      scale = per_channel(x, 1);
    if (!bias)
      bias = per_channel(x, 0);
  }
};

// --- batch_norm

struct Statistics {
  Value mean, variance;
};

// Of each channel, over all other axes of this batch; in f32 at least.
Statistics batch_statistics(const NodeView& n, Value x) {
  std::vector<int64_t> axes = axes_between(0, n.rank_of(x));
  if (axes.size() < 2)
    throw user_error("{}: its input is {}", n.op(), x.type());
  axes.erase(axes.begin() + 1);
  x = widened(x);
  const Value deviation = x - reduce_mean(x, axes, Keep::Dims);
  return {reduce_mean(x, axes), reduce_mean(deviation * deviation, axes)};
}

// The variance of a batch as that of a sample: over one element less of each channel.
Value sample_variance(const NodeView& n, Value x, Value variance) {
  Dim count = 1;
  std::vector<Value> sizes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (axis != 1) {
      count = count * x.dim(axis);
      sizes.push_back(size_along(x, axis));
    }
  if (!count.is_constant()) {
    const Value elements = in_dtype(reduce_prod(concat(sizes, 0), {0}), variance.dtype());
    return variance * (elements / (elements - 1));
  }
  if (*count.constant() < 2)
    throw unsupported("{}: running statistics of {} elements for each channel", n.op(), count);
  const auto elements = static_cast<double>(*count.constant());
  return variance * (elements / (elements - 1));
}

// The statistics that are kept, moved towards those of this batch.
Statistics moved_statistics(const NodeView& n, Value x, const Statistics& batch) {
  const double momentum = n.real("momentum", 0.1);
  const Value mean = n.tensor("running_mean"), variance = n.tensor("running_var");
  const Value sample = sample_variance(n, x, batch.variance);
  return {mean * (1 - momentum) + in_dtype(batch.mean, mean.dtype()) * momentum,
          variance * (1 - momentum) + in_dtype(sample, variance.dtype()) * momentum};
}

Value inverse_deviation(Value variance, double epsilon) { return reciprocal(sqrt(variance + epsilon)); }

// y, and what the normalisation was by.
struct Normalised {
  Value y;
  Statistics by;
  std::optional<Statistics> moved = {};
};

Normalised batch_normalised(const NodeView& n, bool training) {
  for (std::string_view name : {"cudnn_enabled", "momentum"})
    n.ignore(name);
  const Value x = n.tensor("input");
  const Affine affine(n, x);
  const double epsilon = n.real("eps", 1e-5);
  const bool kept = n.has("running_mean") && n.has("running_var");
  if (!training && !kept)
    throw user_error("{}: it has no statistics to normalise by", n.op());
  Normalised result;
  result.by =
      training ? batch_statistics(n, x) : Statistics{n.tensor("running_mean"), n.tensor("running_var")};
  result.y = batch_norm(x, affine.scale, affine.bias, result.by.mean, result.by.variance, epsilon);
  if (training && kept)
    result.moved = moved_statistics(n, x, result.by);
  return result;
}

void change_statistics(const NodeView& n, const Normalised& normalised) {
  if (!normalised.moved)
    return;
  n.change("running_mean", normalised.moved->mean);
  n.change("running_var", normalised.moved->variance);
}

std::vector<Value> convert_batch_norm(const NodeView& n) {
  const Normalised result = batch_normalised(n, n.flag("training", false));
  change_statistics(n, result);
  return {result.y};
}

// With what a gradient needs: the mean and 1 / deviation by which it was, or nothing where they were given.
std::vector<Value> with_statistics(const NodeView& n, const Normalised& result, bool training) {
  if (training)
    return {result.y, result.by.mean, inverse_deviation(result.by.variance, n.real("eps", 1e-5))};
  const auto nothing = [&](size_t index) {
    return fill(int_vector(n.graph(), {0}), filled(n.result_dtype(index, DType::F32), {}, 0));
  };
  return {result.y, nothing(1), nothing(2)};
}

std::vector<Value> convert_native_batch_norm(const NodeView& n) {
  const bool training = n.flag("training", false);
  const Normalised result = batch_normalised(n, training);
  change_statistics(n, result);
  return with_statistics(n, result, training);
}
std::vector<Value> convert_batch_norm_no_training(const NodeView& n) {
  return with_statistics(n, batch_normalised(n, false), false);
}
std::vector<Value> convert_batch_norm_functional(const NodeView& n) {
  const bool training = n.flag("training", false);
  const Normalised result = batch_normalised(n, training);
  std::vector<Value> results = with_statistics(n, result, training);
  const Statistics moved =
      result.moved.value_or(Statistics{n.tensor("running_mean"), n.tensor("running_var")});
  results.push_back(moved.mean);
  results.push_back(moved.variance);
  return results;
}

// With a reserve, which is for cuDNN.
std::vector<Value> convert_batch_norm_with_update(const NodeView& n) {
  const Normalised result = batch_normalised(n, true);
  std::vector<Value> results = with_statistics(n, result, true);
  results.push_back(fill(int_vector(n.graph(), {0}), filled(n.result_dtype(3, DType::U8), {}, 0)));
  results.push_back(result.moved->mean);
  results.push_back(result.moved->variance);
  return results;
}

// --- over the last axes

// The first of them, counted from the end.
int64_t first_axis(const NodeView& n, Value x) {
  const auto count = static_cast<int64_t>(n.sizes("normalized_shape").size());
  if (count < 1 || count > n.rank_of(x))
    throw user_error("{}: normalized_shape has {} sizes for {}", n.op(), count, x.type());
  return -count;
}

Value layer_normalised(const NodeView& n) {
  const Value x = n.tensor("input");
  n.ignore("cudnn_enable");
  return layer_norm(x, n.maybe_tensor("weight"), n.maybe_tensor("bias"), first_axis(n, x),
                    n.real("eps", 1e-5));
}
std::vector<Value> convert_layer_norm(const NodeView& n) { return {layer_normalised(n)}; }

std::vector<Value> convert_native_layer_norm(const NodeView& n) {
  const Value given = n.tensor("input"), x = widened(given);
  const std::vector<int64_t> axes = axes_between(x.rank() + first_axis(n, x), x.rank());
  const Value mean = reduce_mean(x, axes, Keep::Dims), deviation = x - mean;
  const Value variance = reduce_mean(deviation * deviation, axes, Keep::Dims);
  return {layer_normalised(n), in_dtype(mean, n.result_dtype(1, given.dtype())),
          in_dtype(inverse_deviation(variance, n.real("eps", 1e-5)), n.result_dtype(2, given.dtype()))};
}

// Without an epsilon, that of the dtype in which it is computed: the distance from 1 to the next number.
double least_epsilon(DType dtype) {
  return dtype == DType::F64 ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}
std::vector<Value> convert_rms_norm(const NodeView& n) {
  const Value x = n.tensor("input");
  return {rms_norm(x, n.maybe_tensor("weight"), first_axis(n, x), n.real("eps", least_epsilon(x.dtype())))};
}

// --- over groups and channels

// x as [batch, groups, what is normalised together …]: that is one channel or several, and all that follows.
struct Grouped {
  std::vector<int64_t> shape = {0, 0, 0, -1};  // batch, groups, channels of a group, the rest
  int64_t channels;

  Grouped(const NodeView& n, Value x) {
    const int64_t groups = n.integer("group");
    const auto known = x.dim(1).constant();
    if (!known || groups < 1 || *known % groups != 0)
      throw unsupported("{}: {} in {} groups", n.op(), x.type(), groups);
    channels = *known;
    shape[1] = groups;
    shape[2] = channels / groups;
  }
  Value operator()(Value x) const {
    Value batch = size_along(x, 0);
    return reshape(x, concat({batch, int_vector(x.graph(), {shape[1], shape[2], -1})}, 0));
  }
};

// The mean of each group, and 1 / deviation.
std::vector<Value> group_statistics(const NodeView& n, Value x) {
  const Value parts = Grouped(n, x)(widened(x));
  const Value mean = reduce_mean(parts, {2, 3}, Keep::Dims), deviation = parts - mean;
  const Value scale = inverse_deviation(reduce_mean(deviation * deviation, {2, 3}), n.real("eps", 1e-5));
  return {in_dtype(squeeze(mean, {2, 3}), n.result_dtype(1, x.dtype())),
          in_dtype(scale, n.result_dtype(2, x.dtype()))};
}

std::vector<Value> convert_group_norm(const NodeView& n) {
  const Value x = n.tensor("input");
  const Affine affine(n, x);
  n.ignore("cudnn_enabled");
  return {group_norm(x, affine.scale, affine.bias, n.integer("num_groups"), n.real("eps", 1e-5))};
}
std::vector<Value> convert_native_group_norm(const NodeView& n) {
  const Value x = n.tensor("input");
  const Affine affine(n, x);
  for (std::string_view name : {"N", "C", "HxW"})
    n.ignore(name);
  const std::vector<Value> statistics = group_statistics(n, x);
  return {group_norm(x, affine.scale, affine.bias, n.integer("group"), n.real("eps", 1e-5)), statistics[0],
          statistics[1]};
}

std::vector<Value> convert_instance_norm(const NodeView& n) {
  const Value x = n.tensor("input");
  const Affine affine(n, x);
  for (std::string_view name : {"cudnn_enabled", "momentum"})
    n.ignore(name);
  const double epsilon = n.real("eps", 1e-5);
  if (!n.flag("use_input_stats", true))
    return {
        batch_norm(x, affine.scale, affine.bias, n.tensor("running_mean"), n.tensor("running_var"), epsilon)};
  if (n.has("running_mean") || n.has("running_var"))
    throw unsupported("instance_norm: running statistics while training");
  return {instance_norm(x, affine.scale, affine.bias, epsilon)};
}

// --- gradients

// y = normal · weight + bias, where normal = (x - mean) · scale, over axes along which mean and scale are
// those of x.
struct NormalGradient {
  Value x, dy, mean, scale;  // mean and scale broadcast to x
  Value weight = {};         // broadcasts to x, or is empty

  Value normal() const { return (x - mean) * scale; }
  Value d_normal() const { return weight ? dy * weight : dy; }
  // The gradient of x; of a mean square alone, where there is no mean.
  Value dx(const Axes& axes, bool centred = true) const {
    const Value slope = d_normal(), part = normal() * reduce_mean(slope * normal(), axes, Keep::Dims);
    return (centred ? slope - reduce_mean(slope, axes, Keep::Dims) - part : slope - part) * scale;
  }
};

Value sum_over(Value x, const Axes& axes) { return axes.empty() ? x : reduce_sum(x, axes); }

// In the dtypes of what they are the gradients of.
std::vector<Value> in_dtypes_of(const NodeView& n, std::vector<Value> gradients) {
  const DType dtype = n.tensor("input").dtype();
  const Value weight = n.maybe_tensor("weight");
  for (size_t i = 0; i < gradients.size(); ++i)
    gradients[i] = in_dtype(gradients[i], i > 0 && weight ? weight.dtype() : dtype);
  return wanted_gradients(n, gradients);
}

std::vector<Value> convert_layer_norm_backward(const NodeView& n) {
  const Value x = widened(n.tensor("input"));
  const int64_t first = x.rank() + first_axis(n, x);
  const Axes inner = axes_between(first, x.rank()), outer = axes_between(0, first);
  n.ignore("bias");
  const NormalGradient by = {x, widened(n.tensor("grad_out")), widened(n.tensor("mean")),
                             widened(n.tensor("rstd")),
                             n.has("weight") ? widened(n.tensor("weight")) : Value()};
  return in_dtypes_of(n, {by.dx(inner), sum_over(by.dy * by.normal(), outer), sum_over(by.dy, outer)});
}

std::vector<Value> convert_fused_rms_norm(const NodeView& n) {
  const Value x = n.tensor("input"), wide = widened(x);
  const double epsilon = n.real("eps", least_epsilon(x.dtype()));
  const Axes axes = axes_between(x.rank() + first_axis(n, x), x.rank());
  const Value scale = inverse_deviation(reduce_mean(wide * wide, axes, Keep::Dims), epsilon);
  return {rms_norm(x, n.maybe_tensor("weight"), first_axis(n, x), epsilon),
          in_dtype(scale, n.result_dtype(1, x.dtype()))};
}
std::vector<Value> convert_fused_rms_norm_backward(const NodeView& n) {
  const Value x = widened(n.tensor("input"));
  const int64_t first = x.rank() + first_axis(n, x);
  const Axes inner = axes_between(first, x.rank()), outer = axes_between(0, first);
  const NormalGradient by = {x, widened(n.tensor("grad_out")), n.number(x.dtype(), 0),
                             widened(n.tensor("rstd")),
                             n.has("weight") ? widened(n.tensor("weight")) : Value()};
  return in_dtypes_of(n, {by.dx(inner, false), sum_over(by.dy * by.normal(), outer)});
}

// By the statistics of the batch, or by those that were kept, which are no function of x.
std::vector<Value> batch_norm_backward(const NodeView& n, std::string_view dy_name, bool training) {
  const Value x = widened(n.tensor("input"));
  for (std::string_view name : {"update", "reserve"})
    n.ignore(name);
  Axes others = axes_between(0, n.rank_of(x));
  others.erase(others.begin() + 1);
  const auto per_channel_of_x = [&](Value each) {
    return x.rank() > 2 ? unsqueeze(each, axes_between(1, x.rank() - 1)) : each;
  };
  const auto of_channels = [&](std::string_view name) { return per_channel_of_x(widened(n.tensor(name))); };
  Value mean, scale;
  if (training) {
    mean = of_channels("save_mean");
    scale = of_channels(n.has("save_invstd") ? "save_invstd" : "save_var");
    for (std::string_view name : {"running_mean", "running_var", "eps"})
      n.ignore(name);
  } else {
    mean = of_channels("running_mean");
    scale = inverse_deviation(of_channels("running_var"), n.real("eps", 1e-5));
    for (std::string_view name : {"save_mean", "save_invstd", "save_var"})
      n.ignore(name);
  }
  const NormalGradient by = {x, widened(n.tensor(dy_name)), mean, scale,
                             n.has("weight") ? of_channels("weight") : Value()};
  const Value dx = training ? by.dx(others) : by.d_normal() * scale;
  return in_dtypes_of(n, {dx, reduce_sum(by.dy * by.normal(), others), reduce_sum(by.dy, others)});
}
std::vector<Value> convert_native_batch_norm_backward(const NodeView& n) {
  return batch_norm_backward(n, "grad_out", n.flag("train", false));
}
std::vector<Value> convert_batch_norm_backward(const NodeView& n) {
  return batch_norm_backward(n, "grad_out", n.flag("update", false));
}

std::vector<Value> convert_group_norm_backward(const NodeView& n) {
  const Value given = n.tensor("input");
  const Grouped grouped(n, given);
  for (std::string_view name : {"N", "C", "HxW"})
    n.ignore(name);
  const auto per_group = [&](std::string_view name) { return unsqueeze(widened(n.tensor(name)), {2, 3}); };
  Value weight;
  if (n.has("weight"))
    weight = reshape(widened(n.tensor("weight")), {1, grouped.shape[1], grouped.shape[2], 1});
  const NormalGradient by = {grouped(widened(given)), grouped(widened(n.tensor("grad_out"))),
                             per_group("mean"), per_group("rstd"), weight};
  const auto per_channel_sum = [&](Value x) { return reshape(reduce_sum(x, {0, 3}), {grouped.channels}); };
  return in_dtypes_of(n, {reshape(by.dx({2, 3}), shape_of(given)), per_channel_sum(by.dy * by.normal()),
                          per_channel_sum(by.dy)});
}

// --- weights

// v · g / |v|, where the length is over all axes but one; over all of them where that is -1.
std::vector<Value> convert_weight_norm(const NodeView& n) {
  const Value v = n.tensor("v"), g = n.tensor("g");
  std::vector<int64_t> axes = axes_between(0, n.rank_of(v));
  if (n.integer("dim", 0) != -1)
    axes.erase(axes.begin() + n.axis("dim", v.rank(), 0));
  return {v * (g / sqrt(reduce_sum(v * v, axes, Keep::Dims)))};
}

}  // namespace

const Conversions& normalise_conversions() {
  static const Conversions conversions = {
      {"_native_batch_norm_legit", convert_native_batch_norm},
      {"_native_batch_norm_legit_functional", convert_batch_norm_functional},
      {"_native_batch_norm_legit_no_training", convert_batch_norm_no_training},
      {"_batch_norm_with_update_functional", convert_batch_norm_with_update},
      {"_fused_rms_norm", convert_fused_rms_norm},
      {"_fused_rms_norm_backward", convert_fused_rms_norm_backward},
      {"_weight_norm", convert_weight_norm},
      {"batch_norm_backward", convert_batch_norm_backward},
      {"batch_norm", convert_batch_norm},
      {"group_norm", convert_group_norm},
      {"instance_norm", convert_instance_norm},
      {"layer_norm", convert_layer_norm},
      {"native_batch_norm", convert_native_batch_norm},
      {"native_batch_norm_backward", convert_native_batch_norm_backward},
      {"native_group_norm", convert_native_group_norm},
      {"native_group_norm_backward", convert_group_norm_backward},
      {"native_layer_norm", convert_native_layer_norm},
      {"native_layer_norm_backward", convert_layer_norm_backward},
      {"rms_norm", convert_rms_norm},
  };
  return conversions;
}

}  // namespace tenon::torch
