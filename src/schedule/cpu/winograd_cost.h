// winograd_cost.h — whether a convolution by windows of 3 x 3 takes less time in tiles (see winograd.h), in
// which, and how many of them at once.
#pragma once

#include "lowering/contraction_choice.h"
#include "target/target.h"

namespace tenon::schedule {

// A convolution of an image by windows of 3 x 3, at every pixel. Where there are more dimensions, the result
// and the image have planes, and a window sees some of these.
struct Conv3x3 {
  int64_t height, width;  // of the result
  int64_t channels, filters;
  int64_t planes = 1;  // that a window sees

  int64_t all_channels() const { return planes * channels; }
};

// Whether its sizes are such that it may be computed in tiles.
bool may_use_winograd(const Conv3x3& sums, const Target& target);

// The size of tiles with which a convolution takes the least time, unless one is chosen; nothing where adding
// up windows does.
std::optional<int64_t> choose_winograd_tile(const Conv3x3& sums, const Target& target,
                                            const lowering::ContractionChoice& choice = {});

// How the tiles of an image are taken: so many rows of them at once, with a part of the filters.
struct TileBlocks {
  int64_t down = 0, across = 0;  // tiles of the image
  int64_t rows = 1;              // of tiles in a block
  int64_t count = 0;             // of blocks
  int64_t parts = 1;             // of the filters
  int64_t most_parts = 1;        // that there can be

  int64_t tiles() const { return rows * across; }
};
// Those that take the least time, unless others are chosen.
TileBlocks blocks_of(const Conv3x3& sums, int64_t tile, const Target& target,
                     const lowering::ContractionChoice& choice);

// How many channels are transformed at once, and how many filters are multiplied with.
int64_t lanes_of_tiles(const Target& target);
int64_t filters_at_once(int64_t filters, const Target& target);

int64_t divide_up(int64_t a, int64_t b);

}  // namespace tenon::schedule
