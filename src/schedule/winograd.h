// winograd.h — convolutions by windows of 3 x 3 with fewer products.
//
// A tile of t x t results needs (t + 2)² elements of the image. Both these and the weights are transformed by
// small matrices, so that results are sums over channels of (t + 2)² products for each tile, where windows
// would take 9 t²: 36 instead of 144 for t = 4. What comes out is transformed back. It rounds otherwise than
// adding up windows does: by about 1e-6 of the largest result for t = 2, and 1e-5 for t = 4. An infinity or
// NaN in the image reaches all results of the tiles that see it, which are more than those of its windows.
#pragma once

#include <set>

#include "fusion/contraction_choice.h"
#include "loops/definition.h"
#include "target/target.h"
#include "tensor/tensor.h"

namespace tenon {

// A convolution of an image by windows of 3 x 3, at every pixel. Where there are more dimensions, the result
// and the image have planes, and a window sees some of these.
struct WindowSums {
  int64_t height, width;  // of the result
  int64_t channels, filters;
  int64_t planes = 1;  // that a window sees

  int64_t all_channels() const { return planes * channels; }
};

// Whether its sizes are such that it may be computed in tiles.
bool may_tile(const WindowSums& sums, const Target& target);

// The size of tiles with which a convolution takes the least time, unless one is chosen; nothing where adding
// up windows does.
std::optional<int64_t> choose_tile(const WindowSums& sums, const Target& target,
                                   const ContractionChoice& choice = {});

// How the tiles of an image are taken: so many rows of them at once, with a part of the filters.
struct TileBlocks {
  int64_t down = 0, across = 0;  // tiles of the image
  int64_t rows = 1;              // of tiles in a block
  int64_t count = 0;             // of blocks
  int64_t parts = 1;             // of the filters
  int64_t most_parts = 1;        // that there can be

  int64_t tiles() const { return rows * across; }
};
TileBlocks tile_blocks(const loops::Definition& convolution, int64_t tile, const Target& target,
                       const ContractionChoice& choice);

// How far beyond the last pixel of the results windows reach when tiles are whole.
int64_t reach_of_tiles(int64_t size, int64_t tile);

// Transformed weights: blocks of filters that lanes run over, elements of a tile, channels, and lanes.
std::vector<Dim> winograd_sizes(const WindowSums& sums, int64_t tile, const Target& target);
// `weights` are [filters, channels, planes…, 3, 3], of f32.
Tensor winograd_weights(const Tensor& weights, int64_t tile, const Target& target);

// The nest of definitions with one and the same axes: the first is the convolution, whose value multiplies an
// element of the image with one of the transformed weights; the others go on with its results. Images are
// [batch, planes…, height, width, channels], and have elements wherever whole tiles reach.
std::vector<loops::Statement> build_winograd(const std::vector<loops::Definition>& definitions,
                                             const std::set<std::string>& outputs, int64_t tile,
                                             const Target& target, const ContractionChoice& choice = {});

}  // namespace tenon
