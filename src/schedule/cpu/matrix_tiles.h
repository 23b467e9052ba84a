// matrix_tiles.h — tiles of sums computed by matrix instructions.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// The loops of such a block: the variables of its rows and lanes, and how many there are.
struct TileLoops {
  std::string row, lane;
  int64_t rows, lanes;
  // At least 0 in the block that prefetches the next lanes for all blocks; nothing where none does.
  std::optional<Dim> fetches;
};

// Accumulates the products of packed words into `sums`, for every iteration of the reduction.
std::vector<loops::Statement> sum_tiles(const loops::Definition& sum, const loops::Place& sums,
                                        const std::vector<loops::Scalar>& products, const TileLoops& loops);

}  // namespace tenon::schedule
