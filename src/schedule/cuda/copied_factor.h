// copied_factor.h — tiles of a factor that lies in memory as it is multiplied, copied to shared memory.
#pragma once

#include "schedule/cuda/contraction_tiles.h"

namespace tenon::schedule::cuda {

// The first row of a tile. Where sizes are no multiple of tiles, the last tile overlaps the one before.
Dim first_row_of_tile(const std::string& tile, int64_t rows, const std::vector<loops::Axis>& axes);

// Whether each tile of so many rows by so many products is a box of a buffer, and begins where vectors do.
bool can_copy(const TiledFactor& from, const std::vector<loops::Axis>& k, int64_t rows, int64_t products);

// Copies the tile of a step, if it can be copied: as one box, or one for each panel of so many rows.
std::vector<loops::Statement> copy_tile(const TiledFactor& from, const loops::Axis& k, int64_t rows,
                                        int64_t products, const std::string& tile, const loops::Buffer& to,
                                        const Dim& step);

}  // namespace tenon::schedule::cuda
