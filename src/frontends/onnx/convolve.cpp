// convolve.cpp — ONNX convolutions.
#include "ops/convolve.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/window_attributes.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

// The kernel is what the weights say; `kernel_shape` may only agree.
std::vector<Dim> kernel_of(const NodeView& n, Value w) {
  spatial_rank(n, w);
  const std::vector<Dim>& dims = w.shape().dims();
  const std::vector<Dim> kernel(dims.begin() + 2, dims.end());
  const std::vector<int64_t> said = n.integers("kernel_shape", {});
  for (size_t i = 0; i < said.size(); ++i)
    if (said.size() != kernel.size() || (kernel[i].is_constant() && kernel[i] != Dim(said[i])))
      throw user_error("{}: kernel_shape is [{}], but the weights are {}", n.op_type(), fmt::join(said, ","),
                       w.type());
  return kernel;
}

std::vector<Value> convert_conv(const NodeView& n) {
  const Value x = n.in(0), w = n.in(1);
  Attributes attributes = window_attributes(n, x, kernel_of(n, w));
  attributes.emplace("groups", n.integer("group", 1));
  return {add_along_channels(n.make("conv", {{"x", x}, {"w", w}}, attributes).front(), n.maybe(2),
                             spatial_rank(n, w))};
}

// How a ConvTranspose places its kernel, with a number per spatial dimension, and two of pads.
struct TransposedWindow {
  std::vector<int64_t> strides, dilations, pads, output_padding;
  std::vector<Dim> kernel;

  size_t rank() const { return pads.size() / 2; }
  void check_lengths() const {
    for (const auto& [name, count] : {std::pair{"strides", strides.size()},
                                      {"dilations", dilations.size()},
                                      {"output_padding", output_padding.size()},
                                      {"the kernel", kernel.size()}})
      if (count != rank())
        throw user_error("ConvTranspose: {} has {} elements, but there are {} spatial dimensions", name,
                         count, rank());
  }
};

// How much longer than `target` the result would be without pads. Of the input's size only the difference to
// what is wanted matters.
int64_t excess(const TransposedWindow& window, size_t i, Dim size, Dim target) {
  const Dim total = (size - 1) * window.strides[i] + window.output_padding[i] +
                    (window.kernel[i] - 1) * window.dilations[i] + 1 - target;
  if (!total.is_constant())
    throw unsupported("ConvTranspose: the padding depends on dynamic sizes: {}", total);
  constexpr int64_t limit = int64_t{1} << 40;
  if (*total.constant() > limit || *total.constant() < -limit)
    throw user_error("ConvTranspose: sizes that differ by {} are beyond any padding", total);
  return *total.constant();
}

// Pads that give the sizes `wanted` or, where none are, sizes of stride times the input's. Where even no
// padding gives less than that, the rest is output padding.
void fit_padding(TransposedWindow& window, Value x, const std::vector<int64_t>& wanted, bool upper) {
  window.check_lengths();
  const size_t rank = window.rank();
  if (!wanted.empty() && wanted.size() != rank)
    throw user_error("ConvTranspose: output_shape has {} elements, but there are {} spatial dimensions",
                     wanted.size(), rank);
  for (size_t i = 0; i < rank; ++i) {
    const Dim size = x.dim(static_cast<int64_t>(i) + 2);
    const int64_t total = excess(window, i, size, wanted.empty() ? size * window.strides[i] : Dim(wanted[i]));
    const int64_t padding = std::max<int64_t>(total, 0), less = padding / 2;
    window.pads[i] = upper ? less : padding - less;
    window.pads[rank + i] = padding - window.pads[i];
    window.output_padding[i] += padding - total;
  }
}

TransposedWindow transposed_window(const NodeView& n, Value x, Value w) {
  const auto rank = static_cast<size_t>(spatial_rank(n, x));
  const std::vector<int64_t> ones(rank, 1), zeros(rank, 0), no_pads(2 * rank, 0);
  TransposedWindow window = {.strides = n.integers("strides", ones),
                             .dilations = n.integers("dilations", ones),
                             .pads = no_pads,
                             .output_padding = n.integers("output_padding", zeros),
                             .kernel = kernel_of(n, w)};
  std::vector<int64_t> wanted = n.integers("output_shape", {});
  if (wanted.size() == rank + 2)  // older models name batch and channels too
    wanted.erase(wanted.begin(), wanted.begin() + 2);
  const AutoPad mode = read_auto_pad(n);
  if (mode == AutoPad::SameUpper || mode == AutoPad::SameLower || !wanted.empty())
    fit_padding(window, x, wanted, mode == AutoPad::SameUpper);
  else if (mode == AutoPad::NotSet)
    window.pads = n.integers("pads", no_pads);
  return window;
}

std::vector<Value> convert_conv_transpose(const NodeView& n) {
  const Value x = n.in(0), w = n.in(1);
  const TransposedWindow window = transposed_window(n, x, w);
  const Value y = n.make("conv_transpose", {{"x", x}, {"w", w}},
                         {{"groups", n.integer("group", 1)},
                          {"strides", window.strides},
                          {"dilations", window.dilations},
                          {"pads", window.pads},
                          {"output_padding", window.output_padding}})
                      .front();
  return {add_along_channels(y, n.maybe(2), spatial_rank(n, x))};
}

std::vector<Value> convert_deform_conv(const NodeView& n) {
  const Value x = n.in(0), w = n.in(1);
  Attributes attributes = window_attributes(n, x, kernel_of(n, w));
  attributes.emplace("groups", n.integer("group", 1));
  attributes.emplace("offset_groups", n.integer("offset_group", 1));
  const std::vector<Value> y =
      n.make("deform_conv", {{"x", x}, {"w", w}, {"offset", n.in(2)}, {"mask", n.maybe(4)}}, attributes);
  return {add_along_channels(y.front(), n.maybe(3), spatial_rank(n, x))};
}

// In i32, less the zero point: one for all, or one for each of the first dimension.
Value centred(Value x, Value zero_point) {
  const Value wide = cast(x, DType::I32);
  if (!zero_point)
    return wide;
  Value zero = cast(zero_point, DType::I32);
  if (zero.shape().ranked() && zero.rank() == 1 && x.shape().ranked() && zero.dim(0) != Dim(1))
    zero = unsqueeze(zero, axes_between(1, x.rank()));
  return wide - zero;
}

// Padding counts as the zero point: as nothing, once that is taken away.
std::vector<Value> convert_conv_integer(const NodeView& n) {
  const Value x = n.in(0), w = n.in(1);
  Attributes attributes = window_attributes(n, x, kernel_of(n, w));
  attributes.emplace("groups", n.integer("group", 1));
  return n.make("conv", {{"x", centred(x, n.maybe(2))}, {"w", centred(w, n.maybe(3))}}, attributes);
}

// One filter for each channel, over what came before and now: k - 1 elements of state, or zeros, then the
// input. The last k - 1 of those are the next state.
std::vector<Value> convert_causal_conv_with_state(const NodeView& n) {
  const Value x = n.in(0), w = n.in(1), past = n.maybe(3);
  if (spatial_rank(n, w) != 1)
    throw user_error("CausalConvWithState: the weights are {}, but must be [channels, 1, k]", w.type());
  const auto channels = w.dim(0).constant(), k = w.dim(2).constant();
  if (!channels || !k)
    throw unsupported("CausalConvWithState: the shape of its weights must be known when the model is read");
  if (*k < 1)
    throw user_error("CausalConvWithState: the weights are {}, which is no kernel", w.type());
  const Value all = past ? concat({past, x}, 2) : pad(x, int_vector(n.graph(), {*k - 1, 0}), {2});
  const std::vector<int64_t> one = {1};
  Value y = n.make("conv", {{"x", all}, {"w", w}},
                   {{"groups", *channels},
                    {"strides", one},
                    {"dilations", one},
                    {"pads", std::vector<int64_t>{0, 0}}})
                .front();
  y = add_along_channels(y, n.maybe(2), 1);
  const std::string activation = n.text("activation", "none");
  if (activation == "silu" || activation == "swish") {
    const Value wide = cast(y, DType::F32);
    y = cast(wide * sigmoid(wide), y.dtype());
  } else if (activation != "none") {
    throw user_error("CausalConvWithState: activation is {}, but must be silu, swish or none", activation);
  }
  return {y, *k == 1 ? slice(all, 2, 0, 0) : slice(all, 2, 1 - *k, kToTheEnd)};
}

}  // namespace

const Conversions& convolve_conversions() {
  static const Conversions conversions = {
      {"Conv", convert_conv},
      {"ConvInteger", convert_conv_integer},
      {"CausalConvWithState", convert_causal_conv_with_state},
      {"ConvTranspose", convert_conv_transpose},
      {"DeformConv", convert_deform_conv},
  };
  return conversions;
}

}  // namespace tenon::onnx
