// winograd_weights.h — windows of 3 x 3 weights as Winograd convolution multiplies with them, and made again
// of that: a saved program has them once, though its targets read them so and as they are.
#pragma once

#include <optional>

#include "lowering/kernel_graph.h"
#include "tensor/tensor.h"

namespace tenon::schedule {

// For tiles of a size, by what is [rows][columns].
struct WinogradTransforms {
  using Matrix = std::vector<std::vector<double>>;

  Matrix image, weights, back;  // of the image (rows are what each element becomes), of the weights, and back
  // The middle one of three weights as a sum of what they become. The others become themselves, as the first
  // and the last.
  std::vector<std::pair<size_t, double>> middle;
};
bool has_winograd_tiles(int64_t tile);
const WinogradTransforms& winograd_transforms(int64_t tile);

// Weights are [filters, channels, planes…, 3, 3], of f32; transformed, [filters, elements of a tile, channels
// of all planes], in panels of so many filters as are multiplied with at once, whose number that of filters
// is a multiple of.
Extents transformed_extents(const Extents& weights, int64_t tile);
lowering::PackedBLayout winograd_panels(int64_t lanes);
Tensor transformed_windows(const Tensor& weights, int64_t tile, int64_t lanes, int threads);

// Windows that were transformed, but for what was lost by rounding, which the corrections say.
Tensor restored_windows(const Tensor& panels, const Extents& weights, int64_t tile, int threads);
// What makes the weights of what is restored, for most in 5 bytes a window: the distance in f32 between the
// two, but for the corners, which are restored exactly. Nothing where they are not, as those that are -0.
std::optional<std::vector<std::byte>> window_corrections(const Tensor& restored, const Tensor& weights);
// Corrections that are not for so many windows are the user's fault.
void correct_windows(Tensor& restored, std::span<const std::byte> corrections);

}  // namespace tenon::schedule
