#include "ops/module.h"

#include <cmath>

#include "base/hash.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/layer.h"
#include "ops/normalise.h"
#include "ops/reshape.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// The usual width for a layer that sums so many products: outputs vary about as much as inputs do.
Interval symmetric(int64_t summed) {
  const double width = 1.0 / std::sqrt(static_cast<double>(summed));
  return {-width, width};
}

Value add_channel_bias(Value y, Value bias) { return y + unsqueeze(bias, {1, 2}); }

}  // namespace

Value random_parameter(Graph& graph, const std::string& name, const Extents& extents, Interval range) {
  for (const Node* node : graph.nodes())
    if (node->is("parameter") && node->attr("name").as<std::string>() == name)
      return node->result();
  std::vector<double> values(static_cast<size_t>(element_count(extents)));
  const uint64_t seed = hash_combine(0, hash_string(name));
  for (size_t i = 0; i < values.size(); ++i) {
    const double unit = std::ldexp(static_cast<double>(hash_combine(seed, i) >> 11), -53);  // in [0, 1)
    values[i] = range.low + unit * (range.high - range.low);
  }
  return parameter(graph, name, narrow<double>(DType::F32, extents, values));
}

Value Linear::operator()(Value x) const {
  Graph& graph = x.graph();
  const Value weight = random_parameter(graph, name + ".weight", {out, in}, symmetric(in));
  return linear(x, weight, bias ? random_parameter(graph, name + ".bias", {out}, symmetric(in)) : Value());
}

Value Conv2d::operator()(Value x) const {
  Graph& graph = x.graph();
  const Interval range = symmetric(in / groups * kernel * kernel);
  const Value weight = random_parameter(graph, name + ".weight", {out, in / groups, kernel, kernel}, range);
  const Value y = graph
                      .create("conv", {{"x", x}, {"w", weight}},
                              {{"groups", groups},
                               {"strides", Attribute::Ints(2, stride)},
                               {"dilations", Attribute::Ints(2, 1)},
                               {"pads", Attribute::Ints(4, padding)}})
                      ->result();
  return bias ? add_channel_bias(y, random_parameter(graph, name + ".bias", {out}, range)) : y;
}

Value ConvTranspose2d::operator()(Value x) const {
  Graph& graph = x.graph();
  const Interval range = symmetric(out / groups * kernel * kernel);
  const Value weight = random_parameter(graph, name + ".weight", {in, out / groups, kernel, kernel}, range);
  const Value y = graph
                      .create("conv_transpose", {{"x", x}, {"w", weight}},
                              {{"groups", groups},
                               {"output_padding", Attribute::Ints(2, 0)},
                               {"strides", Attribute::Ints(2, stride)},
                               {"dilations", Attribute::Ints(2, 1)},
                               {"pads", Attribute::Ints(4, padding)}})
                      ->result();
  return bias ? add_channel_bias(y, random_parameter(graph, name + ".bias", {out}, range)) : y;
}

Value BatchNorm2d::operator()(Value x) const {
  Graph& graph = x.graph();
  const auto vector = [&](const std::string& what, Interval range) {
    return random_parameter(graph, name + "." + what, {channels}, range);
  };
  const Value scale = affine ? vector("weight", {0.5, 1.5})
                             : constant(graph, Literal::splat(filled(DType::F32, {}, 1), {channels}));
  const Value bias = affine ? vector("bias", {-0.5, 0.5})
                            : constant(graph, Literal::splat(filled(DType::F32, {}, 0), {channels}));
  const Value mean = vector("running_mean", {-0.5, 0.5}), variance = vector("running_var", {0.5, 1.5});
  return batch_norm(x, scale, bias, mean, variance, epsilon);
}

Value LayerNorm::operator()(Value x) const {
  Graph& graph = x.graph();
  const Value weight = random_parameter(graph, name + ".weight", {features}, {0.5, 1.5});
  const Value bias = random_parameter(graph, name + ".bias", {features}, {-0.5, 0.5});
  return layer_norm(x, weight, bias, -1, epsilon);
}

}  // namespace tenon
