// gemm_tile.h — how a sum of products is cut into blocks of results: which axes run in rows and in
// the lanes of vectors, and how many of each a block has.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

struct GemmTile {
  size_t first_lane_axis = 0;  // lanes run over this axis and those that follow
  int64_t nr = 1;
  int64_t groups = 1;         // that all lanes are divided into: no block has lanes of two of them
  std::optional<size_t> row;  // the axis whose rows share what is read along the lanes
  size_t first_row_axis = 0;  // where there are rows: they run over this axis and those up to that one
  int64_t mr = 1;
  // Where there are rows: the factor that moves along the lanes, and the one along the rows.
  std::optional<loops::Scalar> along = {}, across = {};
  bool both_along = false;  // whether the other moves along the lanes, too
  bool tiles = false;       // instructions that multiply matrices take a block whole
  // The last axis that is summed runs within the rows: what one reads, and converts, the next need not, as
  // where the windows of single channels slide along them.
  bool slides = false;
  bool packs = false;  // what a block of lanes needs lies side by side, and all rows read it from there

  Dim lane_size(const loops::Definition& sum) const;
  Dim row_size(const loops::Definition& sum) const;
};

// What a sum adds up in each iteration: one product, or several of words that give the parts of one (see
// compiler/bf16x3_matmul.h).
std::vector<loops::Scalar> products_in(const loops::Scalar& value);

// Nothing where the sum is not such that blocks pay. `may_pack`: whether what lanes read may be put side by
// side first. `panels`: of a constant that lies in them.
std::optional<GemmTile> choose_gemm_tile(const loops::Definition& sum, const Target& target, bool may_pack,
                                         const std::optional<lowering::PackedB>& packed_b = std::nullopt,
                                         const lowering::ContractionChoice& choice = {});

// The load of a constant that had better lie in panels, and these, which have no name yet; nothing where
// there is none. Each index of the load is an axis of its own, or 0. `buffers` are those that the product
// reads.
struct PackedBChoice {
  loops::Scalar load;
  lowering::PackedB packed_b;
};
std::optional<PackedBChoice> choose_packed_b(const loops::Definition& sum, const Target& target,
                                             const std::function<bool(const std::string&)>& is_constant,
                                             const std::map<std::string, loops::Buffer>& buffers,
                                             const lowering::ContractionChoice& choice = {});

// The load of the factor across the lanes, of a product with panels, whose rows had better lie in blocks, and
// how many these should have; nothing where there is none. Each index of the load is the axis of the rows,
// that which is reduced, or 0.
struct PackedAChoice {
  loops::Scalar load;
  loops::Axis axis;  // of the rows
  int64_t rows;
};
std::optional<PackedAChoice> choose_packed_a(const loops::Definition& sum, const lowering::PackedB& packed_b,
                                             const Target& target,
                                             const lowering::ContractionChoice& choice = {});

// Whether loads that move along the axis move from element to element in memory.
bool runs_through_memory(const loops::Scalar& value, const loops::Axis& axis);

// How long a iteration of the sum takes in a block of so many rows, of so many registers each, in
// instructions. Lines from the second cache take as long as three: what rows share may stay in the first,
// where there are not many iterations, but not what they share with other blocks of lanes.
struct BlockOfRows {
  int64_t rows, vectors, iterations, element_bytes;
};
double time_of_iteration(const BlockOfRows& block, const Target& target);

// How many results of a dtype stand side by side in a block, where there are so many.
int64_t lanes_of_block(DType dtype, const Target& target);

// How many of all rows a block had best have, of vectors of f32 of which sums of so many iterations are
// computed; and where only running tells how many there are.
int64_t rows_of_block(int64_t all, int64_t vectors, int64_t iterations, const Target& target);
int64_t usual_rows_of_block(const Target& target);

}  // namespace tenon::schedule
