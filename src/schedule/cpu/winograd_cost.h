// winograd_cost.h — the cost model of Winograd: whether it beats direct convolution, with which tile and
// blocking.
#pragma once

#include "lowering/contraction_choice.h"
#include "target/target.h"

namespace tenon::schedule {

// A 3 x 3 convolution with stride 1. With more dimensions, image and result have planes, of which a window
// reads some.
struct Conv3x3 {
  int64_t height, width;  // of the result
  int64_t channels, filters;
  int64_t planes = 1;  // that a window reads

  int64_t all_channels() const { return planes * channels; }
};

// Whether its sizes allow Winograd.
bool may_use_winograd(const Conv3x3& conv, const Target& target);

// The fastest tile size, unless one is chosen; nothing where direct convolution is faster.
std::optional<int64_t> choose_winograd_tile(const Conv3x3& conv, const Target& target,
                                            const lowering::ContractionChoice& choice = {});

// The blocking of tiles: so many rows of them at a time, with a part of the filters.
struct TileBlocks {
  int64_t down = 0, across = 0;  // tiles of the image
  int64_t rows = 1;              // of tiles in a block
  int64_t count = 0;             // of blocks
  int64_t parts = 1;             // of the filters
  int64_t most_parts = 1;        // that there can be

  int64_t tiles() const { return rows * across; }
};
// The fastest blocking, unless one is chosen.
TileBlocks blocks_of(const Conv3x3& conv, int64_t tile, const Target& target,
                     const lowering::ContractionChoice& choice);

// How many channels are transformed at once, and how many filters are multiplied with.
int64_t lanes_of_tiles(const Target& target);
int64_t filters_at_once(int64_t filters, const Target& target);

int64_t divide_up(int64_t a, int64_t b);

}  // namespace tenon::schedule
