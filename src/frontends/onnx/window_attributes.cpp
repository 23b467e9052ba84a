#include "frontends/onnx/window_attributes.h"

#include "base/error.h"
#include "ops/window.h"

namespace tenon::onnx {

int64_t spatial_rank(const NodeView& n, Value x) {
  if (n.rank_of(x) < 3)
    throw user_error("{}: its input is {}, but must be [batch, channels, spatial…]", n.op_type(), x.type());
  return x.rank() - 2;
}

AutoPad read_auto_pad(const NodeView& n) {
  if (n.text("auto_pad", "").empty())
    return AutoPad::NotSet;
  return n.translate<AutoPad>("auto_pad", {{"NOTSET", AutoPad::NotSet},
                                           {"SAME_UPPER", AutoPad::SameUpper},
                                           {"SAME_LOWER", AutoPad::SameLower},
                                           {"VALID", AutoPad::Valid}});
}

Attributes window_attributes(const NodeView& n, Value x, const std::vector<Dim>& kernel) {
  // The kernel says how many dimensions are spatial where the input does not.
  const size_t rank = x.shape().ranked() ? static_cast<size_t>(spatial_rank(n, x)) : kernel.size();
  const std::vector<int64_t> ones(rank, 1);
  const std::vector<int64_t> strides = n.integers("strides", ones), dilations = n.integers("dilations", ones);
  Attributes attributes = {{"strides", strides}, {"dilations", dilations}};
  const AutoPad mode = read_auto_pad(n);
  std::vector<int64_t> pads(2 * rank, 0);
  if (mode == AutoPad::NotSet || mode == AutoPad::Valid) {
    attributes.emplace("pads", mode == AutoPad::NotSet ? n.integers("pads", pads) : pads);
    return attributes;
  }
  const Padding padding = mode == AutoPad::SameUpper ? Padding::SameUpper : Padding::SameLower;
  bool known =
      x.shape().ranked() && strides.size() == rank && dilations.size() == rank && kernel.size() == rank;
  for (size_t i = 0; i < rank && known; ++i) {
    const auto size = x.dim(static_cast<int64_t>(i) + 2).constant(), cells = kernel[i].constant();
    // What is out of range is left for the gate to refuse.
    constexpr int64_t limit = int64_t{1} << 30;
    known = size && cells && *size < limit && *cells < limit && 0 < strides[i] && strides[i] < limit &&
            0 < dilations[i] && dilations[i] < limit;
    if (known)
      std::tie(pads[i], pads[rank + i]) =
          resolve_padding({.stride = strides[i], .dilation = dilations[i]}, padding, *size, *cells);
  }
  if (known)
    attributes.emplace("pads", pads);
  else
    attributes.emplace("padding", padding == Padding::SameUpper ? "same_upper" : "same_lower");
  return attributes;
}

}  // namespace tenon::onnx
