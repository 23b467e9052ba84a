// matrix_tiles.h — the sums of a block that instructions compute whole, from tiles of matrices.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// The loops of such a block: the variables of its rows and lanes, and how many there are.
struct TileLoops {
  std::string row, lane;
  int64_t rows, lanes;
  // At least 0 in the block that fetches, for all others too, what comes next along the lanes; nothing where
  // none does.
  std::optional<Dim> fetches;
};

// Adds all products of words, as they stand in the block, to `sums`, for every iteration of what is summed.
std::vector<loops::Statement> sum_tiles(const loops::Definition& sum, const loops::Place& sums,
                                        const std::vector<loops::Scalar>& products, const TileLoops& loops);

}  // namespace tenon::schedule
