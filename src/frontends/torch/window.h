// window.h — lists of numbers for the spatial dimensions of a window: strides, pads, and their kind.
#pragma once

#include "frontends/torch/node_view.h"

namespace tenon::torch {

// One number for each spatial dimension; a list of one is for all. Where the argument is left out, or empty,
// `otherwise`.
std::vector<int64_t> for_each_axis(const NodeView& n, std::string_view name, size_t rank,
                                   const std::vector<int64_t>& otherwise);

// The same pads before and after.
std::vector<int64_t> on_both_sides(const std::vector<int64_t>& pads);

}  // namespace tenon::torch
