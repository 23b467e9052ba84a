// window_attributes.h — the attributes that ONNX ops with a sliding window share: strides, dilations, pads,
// auto_pad.
#pragma once

#include "frontends/onnx/node_view.h"

namespace tenon::onnx {

// The number of spatial dimensions of a tensor [batch, channels, spatial…].
int64_t spatial_rank(const NodeView& n, Value x);

// Where padding comes from: the attribute pads, or none, or as much as makes sizes independent of the kernel,
// with an odd element at the end (SameUpper) or the start.
enum class AutoPad : uint8_t { NotSet, Valid, SameUpper, SameLower };
AutoPad read_auto_pad(const NodeView& n);

// strides, dilations, pads and padding, for an op of ours with a window of `kernel` over x. Padding that
// auto_pad asks for becomes explicit where sizes are known.
Attributes window_attributes(const NodeView& n, Value x, const std::vector<Dim>& kernel);

}  // namespace tenon::onnx
