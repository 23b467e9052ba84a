// gemm_tile.h — the register tile of a contraction: which axes are rows and which are vectorised, and how
// many of each a tile has.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

struct GemmTile {
  size_t first_lane_axis = 0;  // this axis and those that follow are vectorised
  int64_t nr = 1;
  int64_t groups = 1;         // of lanes: no tile has lanes of two groups
  std::optional<size_t> row;  // the axis whose rows share the operand read along the lanes
  size_t first_row_axis = 0;  // rows are this axis to `row`
  int64_t mr = 1;
  // Where there are rows: the operand indexed by the lanes, and the one indexed by the rows.
  std::optional<loops::Scalar> along = {}, across = {};
  bool both_along = false;  // whether the other is indexed by the lanes, too
  bool tiles = false;       // matrix instructions compute a whole tile
  // The last reduced axis is inside the rows, which share loads and conversions, as the sliding windows of a
  // depthwise convolution do.
  bool slides = false;
  bool packs = false;  // the operands of a block of lanes are packed first

  Dim lane_size(const loops::Definition& sum) const;
  Dim row_size(const loops::Definition& sum) const;
};

// The terms of each iteration: one product, or several of bf16 pairs that make up one (see bf16x3_matmul.h).
std::vector<loops::Scalar> products_in(const loops::Scalar& value);

// Nothing where tiling does not pay. `may_pack`: whether operands may be packed first. `packed_b`: of a
// constant that is packed already.
std::optional<GemmTile> choose_gemm_tile(const loops::Definition& sum, const Target& target, bool may_pack,
                                         const std::optional<lowering::PackedB>& packed_b = std::nullopt,
                                         const lowering::ContractionChoice& choice = {});

// The load of a constant that should be packed, and its layout, still without a name; nothing where there is
// none. Each index of the load is an axis of its own, or 0. `buffers` are those that the product reads.
struct PackedBChoice {
  loops::Scalar load;
  lowering::PackedB packed_b;
};
std::optional<PackedBChoice> choose_packed_b(const loops::Definition& sum, const Target& target,
                                             const std::function<bool(const std::string&)>& is_constant,
                                             const std::map<std::string, loops::Buffer>& buffers,
                                             const lowering::ContractionChoice& choice = {});

// The load of the other operand of a product with packed B that should be packed into row blocks, and their
// height; nothing where there is none. Each index of the load is the axis of the rows, the reduced one, or 0.
struct PackedAChoice {
  loops::Scalar load;
  loops::Axis axis;  // of the rows
  int64_t rows;
};
std::optional<PackedAChoice> choose_packed_a(const loops::Definition& sum, const lowering::PackedB& packed_b,
                                             const Target& target,
                                             const lowering::ContractionChoice& choice = {});

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
