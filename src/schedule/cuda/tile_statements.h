// tile_statements.h — the statements that tiles of products are built of, and the variables of their loops.
#pragma once

#include "loops/definition.h"
#include "loops/kernel.h"

namespace tenon::schedule::cuda {

// Loop variables end in a number, as no size does.
inline const std::string kTileM = "tile_m0", kTileN = "tile_n0";  // which tile of the result
inline const std::string kThread = "p0";                          // of the thread block
inline const std::string kPart = "part0", kLane = "lane0";        // of what a thread loads
inline const std::string kProduct = "k0";                         // within a tile

inline Dim symbol(const std::string& variable) { return Dim::symbol(variable); }

loops::Statement store(const loops::Buffer& to, const std::vector<Dim>& at, const loops::Scalar& value,
                       const std::string& combine = "");
loops::Scalar element(const loops::Buffer& from, const std::vector<Dim>& at);

// A loop; of one iteration, its body.
std::vector<loops::Statement> loop(const std::string& variable, const Dim& count, loops::Mark mark,
                                   std::vector<loops::Statement> body);
// The body with a variable of one value.
std::vector<loops::Statement> where(const std::string& variable, const Dim& value,
                                    std::vector<loops::Statement> body);
std::vector<loops::Statement> guarded(const std::vector<Dim>& conditions, std::vector<loops::Statement> body);
// For each of so many neighbours, which are loaded and stored together: kLane.
std::vector<loops::Statement> in_lanes(int64_t vector, std::vector<loops::Statement> body);

// Axes counted in vectors of elements of the last.
struct VectorAxes {
  Dim vectors;
  std::map<std::string, Dim> variables;  // in terms of which vector it is, and kLane
};
VectorAxes in_vectors(std::vector<loops::Axis> axes, int64_t vector, const std::string& variable);

}  // namespace tenon::schedule::cuda
