// convolve_gradient.h — the gradients of sliding windows, by convolutions: what convolutions and pools share.
#pragma once

#include "ops/window.h"

namespace tenon {

// The attributes of conv and conv_transpose for a window, without padding modes.
Attributes window_attributes(const Window& window, int64_t groups);

// The window of a node over x with the padding as numbers, whatever the mode; nothing where that
// is dynamic.
std::optional<Window> explicit_window(const Node& n, Value x, std::span<const Dim> kernel);

// The gradient of conv(x, w) with respect to x: each element of dy adds a multiple of its filter to what its
// window saw.
Value spread_windows(Value dy, Value w, Value x, const Window& window, int64_t groups);

// The gradient of conv(x, w) with respect to w: a convolution in which the images of a batch have the place
// of the channels.
Value correlate_windows(Value dy, Value w, Value x, const Window& window, int64_t groups);

}  // namespace tenon
