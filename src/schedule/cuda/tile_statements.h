// tile_statements.h — the statements that tiles of products are built of, and the variables of their loops.
#pragma once

#include "loops/definition.h"
#include "schedule/cuda/statements.h"

namespace tenon::schedule::cuda {

// Loop variables end in a number, as no size does.
inline const std::string kTileM = "tile_m0", kTileN = "tile_n0";  // which tile of the result
inline const std::string kPart = "part0", kLane = "lane0";        // of what a thread loads
inline const std::string kProduct = "k0";                         // within a tile

// For each of so many neighbours, which are loaded and stored together: kLane.
std::vector<loops::Statement> in_lanes(int64_t vector, std::vector<loops::Statement> body);

// Axes counted in vectors of elements of the last.
struct VectorAxes {
  Dim vectors;
  std::map<std::string, Dim> variables;  // in terms of which vector it is, and kLane
};
VectorAxes in_vectors(std::vector<loops::Axis> axes, int64_t vector, const std::string& variable);

}  // namespace tenon::schedule::cuda
