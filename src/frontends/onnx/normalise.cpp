// normalise.cpp — ONNX normalisations.
#include "ops/normalise.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/precision.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

double epsilon(const NodeView& n) { return n.real("epsilon", 1e-5); }

// --- BatchNormalization

// The mean and variance of each channel of this batch, in f32 at least.
std::pair<Value, Value> batch_statistics(const NodeView& n, Value x) {
  std::vector<int64_t> axes = axes_between(0, n.rank_of(x));
  if (x.rank() > 1)  // a vector is a batch of one channel
    axes.erase(axes.begin() + 1);
  x = widened(x);
  const Value deviation = x - reduce_mean(x, axes, Keep::Dims);
  const auto per_channel = [&](Value value) { return reshape(reduce_mean(value, axes, Keep::Dims), {-1}); };
  return {per_channel(x), per_channel(deviation * deviation)};
}

// Before opset 14 a model trains if it takes the statistics and does not say otherwise.
bool trains(const NodeView& n) {
  if (n.opset() >= 14)
    return n.flag("training_mode", false);
  return (n.wants(1) || n.wants(2) || n.wants(3) || n.wants(4)) && !n.flag("is_test", false);
}

// Until opset 8 a model could ask for statistics of each element of the batch's entries (spatial = 0): then
// each is a channel of its own.
std::vector<Value> convert_batch_normalization(const NodeView& n) {
  const bool apart = n.opset() < 9 && !n.flag("spatial", true);
  const bool training = trains(n);
  const Value x = apart ? reshape_copying(n.in(0), {0, -1}) : n.in(0);
  const auto parameter = [&](size_t index) { return apart ? reshape(n.in(index), {-1}) : n.in(index); };
  const auto restored = [&](Value value, size_t like) {
    return apart ? reshape(value, shape_of(n.in(like))) : value;
  };
  const Value old_mean = parameter(3), old_variance = parameter(4);
  if (!training)
    return {restored(batch_norm(x, parameter(1), parameter(2), old_mean, old_variance, epsilon(n)), 0)};
  const double momentum = n.real("momentum", 0.9);
  const auto [mean, variance] = batch_statistics(n, x);
  const Value y = batch_norm(x, parameter(1), parameter(2), mean, variance, epsilon(n));
  const Value own_mean = in_dtype(mean, old_mean.dtype());
  const Value own_variance = in_dtype(variance, old_variance.dtype());
  return {restored(y, 0), restored(old_mean * momentum + own_mean * (1 - momentum), 3),
          restored(old_variance * momentum + own_variance * (1 - momentum), 4), restored(own_mean, 3),
          restored(own_variance, 4)};
}

// --- the others

std::vector<Value> convert_layer_normalization(const NodeView& n) {
  const Value x = n.in(0);
  const int64_t axis = n.integer("axis", -1);
  const Value y = layer_norm(x, n.in(1), n.maybe(2), axis, epsilon(n));
  if (!n.wants(1) && !n.wants(2))
    return {y};
  const int64_t rank = n.rank_of(x);
  const std::vector<int64_t> axes = axes_between(checked_axis(n.op_type(), axis, rank), rank);
  const Value stashed = in_dtype(x, n.dtype("stash_type", DType::F32));
  const Value mean = reduce_mean(stashed, axes, Keep::Dims), deviation = stashed - mean;
  const Value variance = reduce_mean(deviation * deviation, axes, Keep::Dims);
  return {y, mean, reciprocal(tenon::sqrt(variance + epsilon(n)))};
}

// The result has the dtype of the scale.
std::vector<Value> convert_rms_normalization(const NodeView& n) {
  Value x = n.in(0), scale = n.in(1);
  const DType dtype = scale.dtype();
  if (x.dtype() != dtype) {
    const bool in_double = x.dtype() == DType::F64 || dtype == DType::F64;
    x = in_dtype(x, in_double ? DType::F64 : DType::F32);
    scale = in_dtype(scale, x.dtype());
  }
  return {in_dtype(rms_norm(x, scale, n.integer("axis", -1), epsilon(n)), dtype)};
}

std::vector<Value> convert_instance_normalization(const NodeView& n) {
  return {instance_norm(n.in(0), n.in(1), n.in(2), epsilon(n))};
}

// Opset 18 has a scale and bias for each group, and not for each channel: then a group is a channel.
std::vector<Value> convert_group_normalization(const NodeView& n) {
  const Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  const int64_t groups = n.integer("num_groups");
  if (n.opset() >= 21)
    return {group_norm(x, scale, bias, groups, epsilon(n))};
  const Value merged = reshape_copying(x, {0, groups, -1});
  return {reshape(instance_norm(merged, scale, bias, epsilon(n)), shape_of(x))};
}

std::vector<Value> convert_lrn(const NodeView& n) {
  return n.make("local_response_norm", {{"x", n.in(0)}},
                {{"size", n.integer("size")},
                 {"alpha", n.real("alpha", 1e-4)},
                 {"beta", n.real("beta", 0.75)},
                 {"bias", n.real("bias", 1)}});
}

std::vector<Value> convert_mean_variance_normalization(const NodeView& n) {
  const std::vector<int64_t> axes = n.integers("axes", {0, 2, 3});
  const Value x = widened(n.in(0)), deviation = x - reduce_mean(x, axes, Keep::Dims);
  const Value variance = reduce_mean(deviation * deviation, axes, Keep::Dims);
  return {in_dtype(deviation / (tenon::sqrt(variance) + 1e-9), n.in(0).dtype())};
}

// A lane of zeros has no length, and stays as it is.
std::vector<Value> convert_lp_normalization(const NodeView& n) {
  const std::vector<int64_t> axis = {n.integer("axis", -1)};
  const int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2)
    throw user_error("LpNormalization: p is {}, but must be 1 or 2", p);
  const Value x = widened(n.in(0)), zero = scalar(n.graph(), x.dtype(), 0);
  const Value norm =
      p == 1 ? reduce_sum(tenon::abs(x), axis, Keep::Dims) : tenon::sqrt(reduce_sum(x * x, axis, Keep::Dims));
  return {in_dtype(where(equal(norm, zero), zero, x / norm), n.in(0).dtype())};
}

}  // namespace

const Conversions& normalise_conversions() {
  static const Conversions conversions = {
      {"BatchNormalization", convert_batch_normalization},
      {"GroupNormalization", convert_group_normalization},
      {"InstanceNormalization", convert_instance_normalization},
      {"LayerNormalization", convert_layer_normalization},
      {"LpNormalization", convert_lp_normalization},
      {"LRN", convert_lrn},
      {"MeanVarianceNormalization", convert_mean_variance_normalization},
      {"RMSNormalization", convert_rms_normalization},
      {"SimplifiedLayerNormalization", convert_rms_normalization},
  };
  return conversions;
}

}  // namespace tenon::onnx
