// winograd.h — Winograd convolution by 3 x 3 windows.
//
// A tile of t x t results needs (t + 2)² elements of the image. Both these and the weights are transformed by
// small matrices, so that results are sums over channels of (t + 2)² products for each tile, where direct
// convolution takes 9 t²: 36 instead of 144 for t = 4. The sums are transformed back. Rounding differs from
// direct convolution: by about 1e-6 of the largest result for t = 2, and 1e-5 for t = 4. An infinity or
// NaN in the image reaches all results of the tiles that read it, which are more than those of its windows.
#pragma once

#include <set>

#include "loops/definition.h"
#include "schedule/cpu/winograd_cost.h"
#include "tensor/tensor.h"

namespace tenon::schedule {

// How far windows of whole tiles reach beyond the last pixel of the results.
int64_t reach_of_tiles(int64_t size, int64_t tile);

// Transformed weights: blocks of filters, elements of a tile, channels, and lanes (filters).
std::vector<Dim> winograd_sizes(const Conv3x3& conv, int64_t tile, const Target& target);
// `weights` are [filters, channels, planes…, 3, 3], of f32.
Tensor winograd_weights(const Tensor& weights, int64_t tile, const Target& target, int threads);

// The nest of definitions with the same axes: the first is the convolution, whose value multiplies an element
// of the image with one of the transformed weights; the others are its epilogue. Images are [batch, planes…,
// height, width, channels], and have elements wherever whole tiles reach.
std::vector<loops::Statement> build_winograd(const std::vector<loops::Definition>& definitions,
                                             const std::set<std::string>& outputs,
                                             const lowering::WinogradPlan& plan, const Target& target);

}  // namespace tenon::schedule
