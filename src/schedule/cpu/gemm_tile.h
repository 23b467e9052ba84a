// gemm_tile.h — the cost model of register tiles: how many rows and columns of a contraction they have, and
// which operands are packed for them.
#pragma once

#include "lowering/contraction_plan.h"

namespace tenon::schedule {

// A tile that was weighed, with its cost in instructions; see time_of_iteration.
struct WeighedTile {
  int64_t mr, nr;
  double instructions;
};
using WeighedTiles = std::vector<WeighedTile>;

// Nothing where tiling does not pay. `may_pack`: whether operands may be packed first. `packed_b`: of a
// constant that is packed already, or will be.
std::optional<lowering::GemmTile> choose_gemm_tile(
    const loops::Definition& sum, const Target& target, bool may_pack,
    const std::optional<lowering::PackedB>& packed_b = std::nullopt,
    const lowering::ContractionChoice& choice = {});

// Nothing where there is no constant to pack. `buffers` are those that the product reads.
std::optional<lowering::PackB> choose_packed_b(const loops::Definition& sum, const Target& target,
                                               const std::function<bool(const std::string&)>& is_constant,
                                               const lowering::BufferTable& buffers,
                                               const lowering::ContractionChoice& choice = {});

// Nothing where the other operand of a product with packed B is read as it is.
std::optional<lowering::PackA> choose_packed_a(const loops::Definition& sum,
                                               const lowering::PackedB& packed_b, const Target& target,
                                               const lowering::BufferTable& buffers,
                                               const lowering::ContractionChoice& choice = {});

// The tiles that the cost model weighs for the lanes of a tile that was chosen, the best height of each;
// empty where sizes are dynamic, or matrix instructions compute it.
WeighedTiles weigh_tiles(const loops::Definition& sum, const lowering::GemmTile& tile, const Target& target);

// Whether loads indexed by the axis are contiguous along it.
bool runs_through_memory(const loops::Scalar& value, const loops::Axis& axis);

// The cost of an iteration of the sum, in instructions, in a tile of so many rows of so many registers. A
// cache line from L2 costs three: what rows share may stay in L1, where there are not many iterations, but
// not what they share with other blocks of lanes.
struct BlockOfRows {
  int64_t rows, vectors, iterations, element_bytes;
};
double time_of_iteration(const BlockOfRows& block, const Target& target);

// The width of a tile for a dtype, where there are as many results.
int64_t lanes_of_block(DType dtype, const Target& target);

// The best tile height for so many rows, with f32 vectors and sums of so many iterations; and for a dynamic
// number of rows.
int64_t rows_of_block(int64_t all, int64_t vectors, int64_t iterations, const Target& target);
int64_t usual_rows_of_block(const Target& target);

}  // namespace tenon::schedule
