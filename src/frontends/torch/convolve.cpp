// convolve.cpp — PyTorch's convolutions.
#include "ops/convolve.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "frontends/torch/window.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/reshape.h"

namespace tenon::torch {
namespace {

using Ints = std::vector<int64_t>;

// As much as keeps the size; an odd cell goes after the elements.
Ints same_padding(const NodeView& n, Value weight, const Ints& dilations) {
  Ints before, after;
  for (size_t i = 0; i < dilations.size(); ++i) {
    const auto cells = weight.dim(static_cast<int64_t>(i) + 2).constant();
    if (!cells)
      throw unsupported("{}: a kernel of dynamic size", n.op());
    const int64_t total = dilations[i] * (*cells - 1);
    before.push_back(total / 2);
    after.push_back(total - total / 2);
  }
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

Ints pads_of(const NodeView& n, Value weight, const Ints& dilations) {
  if (n.overload() != "padding")
    return on_both_sides(for_each_axis(n, "padding", dilations.size(), Ints(dilations.size(), 0)));
  const std::string word = n.text("padding", "valid");
  if (word != "same" && word != "valid")
    throw user_error("{}: padding is \"{}\", but must be same or valid", n.op(), word);
  return word == "same" ? same_padding(n, weight, dilations) : Ints(2 * dilations.size(), 0);
}

Value convolve(const NodeView& n, Value x, Value weight, bool transposed) {
  const auto rank = static_cast<size_t>(n.rank_of(weight) - 2);
  const Ints strides = for_each_axis(n, "stride", rank, Ints(rank, 1)),
             dilations = for_each_axis(n, "dilation", rank, Ints(rank, 1));
  Attributes attributes = {{"groups", n.integer("groups", 1)},
                           {"strides", strides},
                           {"dilations", dilations},
                           {"pads", pads_of(n, weight, dilations)}};
  if (!transposed)
    return n.make_one("conv", {{"x", x}, {"w", weight}}, attributes);
  attributes.emplace("output_padding", for_each_axis(n, "output_padding", rank, Ints(rank, 0)));
  return n.make_one("conv_transpose", {{"x", x}, {"w", weight}}, attributes);
}

// An input without a batch is a batch of one.
std::vector<Value> convolved(const NodeView& n, bool transposed) {
  const Value x = n.tensor("input"), weight = n.tensor("weight"), bias = n.maybe_tensor("bias");
  if (n.rank_of(weight) < 3)
    throw user_error("{}: the weight is {}, which is no kernel", n.op(), weight.type());
  const bool single = n.rank_of(x) + 1 == weight.rank();
  const Value y = add_along_channels(convolve(n, single ? unsqueeze(x, {0}) : x, weight, transposed), bias,
                                     weight.rank() - 2);
  return {single ? squeeze(y, {0}) : y};
}

std::vector<Value> convert_conv(const NodeView& n) { return convolved(n, false); }
std::vector<Value> convert_conv_transpose(const NodeView& n) { return convolved(n, true); }
std::vector<Value> convert_convolution(const NodeView& n) {
  const bool transposed = n.flag("transposed", false);
  n.ignore("output_padding");
  for (std::string_view name : {"benchmark", "deterministic", "cudnn_enabled", "allow_tf32"})
    n.ignore(name);
  return convolved(n, transposed);
}

std::vector<Value> convert_convolution_backward(const NodeView& n) {
  const Value dy = n.tensor("grad_output"), x = n.tensor("input"), weight = n.tensor("weight");
  n.ignore("bias_sizes");
  std::vector<Value> all = gradients(n, convert_convolution, {{"input", x}, {"weight", weight}}, {dy});
  std::vector<int64_t> others = axes_between(0, n.rank_of(dy));
  others.erase(others.end() - (n.rank_of(weight) - 1));  // the channels
  all.push_back(reduce_sum(dy, others));
  return wanted_gradients(n, all);
}

}  // namespace

const Conversions& convolve_conversions() {
  static const Conversions conversions = {
      {"_convolution", convert_convolution},
      {"conv1d", convert_conv},
      {"conv2d", convert_conv},
      {"conv3d", convert_conv},
      {"conv_transpose1d", convert_conv_transpose},
      {"conv_transpose2d", convert_conv_transpose},
      {"conv_transpose3d", convert_conv_transpose},
      {"convolution", convert_convolution},
      {"convolution_backward", convert_convolution_backward},
  };
  return conversions;
}

}  // namespace tenon::torch
