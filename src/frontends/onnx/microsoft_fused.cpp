// microsoft_fused.cpp — ops of ONNX Runtime's own (com.microsoft) that are several standard ones in one:
// products with what follows them, normalised sums, embeddings. ONNX Runtime writes them when it saves what
// it optimised.
#include <algorithm>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/linear.h"
#include "ops/normalise.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// --- activations

std::vector<Value> convert_bias_gelu(const NodeView& n) { return {gelu(n.in(0) + n.in(1))}; }

std::vector<Value> convert_fast_gelu(const NodeView& n) {
  const Value bias = n.maybe(1);
  return {gelu_tanh(bias ? n.in(0) + bias : n.in(0))};
}

std::vector<Value> convert_quick_gelu(const NodeView& n) { return {silu(n.in(0), n.real("alpha", 1.702f))}; }

// The numbers that go with an activation.
class Numbers {
 public:
  Numbers(const NodeView& n, std::vector<double> values) : n_(n), values_(std::move(values)) {}

  double at(size_t index) const {
    if (index >= values_.size())
      throw user_error("{}: {} numbers are too few for the activation {}", n_.op_type(), values_.size(),
                       n_.text("activation"));
    return values_[index];
  }

 private:
  const NodeView& n_;
  std::vector<double> values_;
};

Value activate(const NodeView& n, Value x, const Numbers& numbers) {
  const auto number = [&](size_t index) { return scalar(n.graph(), x.dtype(), numbers.at(index)); };
  using Activation = std::function<Value()>;
  return n.translate<Activation>(
      "activation", "",
      {{"", [&] { return x; }},
       {"Relu", [&] { return relu(x); }},
       {"Sigmoid", [&] { return sigmoid(x); }},
       {"Tanh", [&] { return tanh(x); }},
       {"LeakyRelu", [&] { return leaky_relu(x, numbers.at(0)); }},
       {"Clip", [&] { return clip(x, number(0), number(1)); }},
       {"HardSigmoid", [&] { return hard_sigmoid(x, numbers.at(0), numbers.at(1)); }}})();
}

// --- convolutions and products

Value activated_sum(const NodeView& n, Value x, Value summand) {
  const Numbers numbers(n, n.has("activation_params") ? n.reals("activation_params") : std::vector<double>());
  return activate(n, summand ? x + summand : x, numbers);
}

std::vector<Value> convert_fused_conv(const NodeView& n) {
  const Value y = convert_as("Conv", n, {n.in(0), n.in(1), n.maybe(2)}).front();
  return {activated_sum(n, y, n.maybe(3))};
}

std::vector<Value> convert_nhwc_fused_conv(const NodeView& n) {
  const int64_t rank = n.rank_of(n.in(0));
  const Value y = convert_as("Conv", n, {channels_first(n.in(0), rank), n.in(1), n.maybe(2)}).front();
  return {activated_sum(n, channels_last(y, rank), n.maybe(3))};
}

std::vector<Value> convert_nhwc_max_pool(const NodeView& n) {
  const int64_t rank = n.rank_of(n.in(0));
  return {channels_last(convert_as("MaxPool", n, {channels_first(n.in(0), rank)}).front(), rank)};
}

std::vector<Value> convert_fused_gemm(const NodeView& n) {
  const Value y = convert_as("Gemm", n, {n.in(0), n.in(1), n.maybe(2)}).front();
  std::vector<double> numbers;
  for (std::string_view name : {"activation_alpha", "activation_beta", "activation_gamma"})
    if (n.has(name))
      numbers.push_back(n.real(name));
  return {activate(n, y, {n, numbers})};
}

// The first dimension behind those of the batch.
Value batch_in_front(const NodeView& n, Value x) {
  std::vector<int64_t> order = axes_between(0, n.rank_of(x));
  if (order.size() > 2)
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  return transpose(x, order);
}

std::vector<Value> convert_fused_matmul(const NodeView& n) {
  const auto side = [&](size_t index, std::string_view turned) {
    const Value x = n.in(index);
    return n.flag(turned, false) ? batch_in_front(n, x) : x;
  };
  // A vector is not transposed.
  const auto transposed = [&](Value x, std::string_view flag) {
    return n.flag(flag, false) && n.rank_of(x) > 1;
  };
  const Value a = side(0, "transBatchA"), b = side(1, "transBatchB");
  const Value y = matmul(a, b, {.a = transposed(a, "transA"), .b = transposed(b, "transB")});
  const double factor = n.real("alpha", 1);
  return {factor == 1 ? y : y * factor};
}

// --- normalisation

constexpr double kEpsilon = 1e-12f;

// What is normalised is also the fourth result.
Value skip_sum(const NodeView& n, size_t bias_index) {
  const Value bias = n.maybe(bias_index), sum = n.in(0) + n.in(1);
  return bias ? sum + bias : sum;
}

std::vector<Value> convert_skip_layer_normalization(const NodeView& n) {
  const Value sum = skip_sum(n, 4);
  return {layer_norm(sum, n.in(2), n.maybe(3), -1, n.real("epsilon", kEpsilon)), {}, {}, sum};
}

std::vector<Value> convert_skip_simplified_layer_normalization(const NodeView& n) {
  const Value sum = skip_sum(n, 3);
  return {rms_norm(sum, n.in(2), -1, n.real("epsilon", kEpsilon)), {}, {}, sum};
}

// Positions count from 0 unless given. Of a mask, its ones are counted.
std::vector<Value> convert_embed_layer_normalization(const NodeView& n) {
  const Value ids = n.in(0), segments = n.maybe(1), mask = n.maybe(7), positions = n.maybe(8);
  const Value rows = positions ? gather(n.in(3), positions, 0)
                               : slice(n.in(3), int_vector(n.graph(), {0}), size_along(ids, 1), {0});
  Value sum = gather(n.in(2), ids, 0) + rows;
  if (segments)
    sum = sum + gather(n.in(4), segments, 0);
  const Value y = layer_norm(sum, n.in(5), n.in(6), -1, n.real("epsilon", kEpsilon));
  const Value one = scalar(n.graph(), ids.dtype(), 1), zero = scalar(n.graph(), ids.dtype(), 0);
  const Value counted = mask ? where(equal(mask, one), one, zero) : ids * zero;
  return {y, reduce_sum(counted, {1}), sum};
}

}  // namespace

const Conversions& microsoft_fused_conversions() {
  static const Conversions conversions = {
      {"BiasGelu", convert_bias_gelu, kDomain},
      {"EmbedLayerNormalization", convert_embed_layer_normalization, kDomain},
      {"FastGelu", convert_fast_gelu, kDomain},
      {"FusedConv", convert_fused_conv, kDomain},
      {"FusedGemm", convert_fused_gemm, kDomain},
      {"FusedMatMul", convert_fused_matmul, kDomain},
      {"GatherND", as_standard("GatherND", 11), kDomain},
      {"Gelu", unary("gelu"), kDomain},
      {"GridSample", as_standard("GridSample", 16), kDomain},
      {"NhwcFusedConv", convert_nhwc_fused_conv, kDomain},
      {"NhwcMaxPool", convert_nhwc_max_pool, kDomain},
      {"Pad", as_standard("Pad", 11), kDomain},
      {"QuickGelu", convert_quick_gelu, kDomain},
      {"Range", as_standard("Range", 11), kDomain},
      {"SkipLayerNormalization", convert_skip_layer_normalization, kDomain},
      {"SkipSimplifiedLayerNormalization", convert_skip_simplified_layer_normalization, kDomain},
      {"TransposeMatMul", convert_fused_matmul, kDomain},
      {"Trilu", as_standard("Trilu", 14), kDomain},
  };
  return conversions;
}

}  // namespace tenon::onnx
