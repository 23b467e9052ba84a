// contraction_plan.h — how a contraction is computed. Decided once, by schedule/cpu/select_contraction.h;
// what follows reads it: packing, Winograd, bf16x3 and the loops that are built.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

enum class Algorithm : uint8_t {
  Gemm,       // a register tile of rows and columns, whose operands are reused
  Gemv,       // one row: each element of the other operand is used once
  Direct,     // windows of an image are read where they are (implicit GEMM); also reductions without a tile
  Depthwise,  // each lane multiplies elements of its own channel
  Winograd,
};

// The register tile: which axes are rows and which are vectorised, and how many of each a tile has.
struct GemmTile {
  size_t first_lane_axis = 0;  // this axis and those that follow are vectorised
  int64_t nr = 1;
  int64_t groups = 1;         // of lanes: no tile has lanes of two groups
  std::optional<size_t> row;  // the axis whose rows share the operand read along the lanes
  size_t first_row_axis = 0;  // rows are this axis to `row`
  int64_t mr = 1;
  size_t along = 1;         // where there are rows: which operand of the product the lanes index
  bool both_along = false;  // whether they index the other, too
  bool tiles = false;       // matrix instructions compute a whole tile
  // The last reduced axis is inside the rows, which share loads and conversions, as the sliding windows of a
  // depthwise convolution do.
  bool slides = false;
  bool packs = false;  // the operands of a block of lanes are packed first

  Dim lane_size(const loops::Definition& sum) const;
  Dim row_size(const loops::Definition& sum) const;
};

// Blocking of the reduction: so many iterations at a time, for all rows and so many panels.
struct KBlocks {
  int64_t iterations, panels;
};

// Cache blocking around the register tiles.
struct CacheBlocks {
  bool rows_share_panel = false;           // several row blocks read the operands of one block of lanes
  std::optional<size_t> parted_axis = {};  // whose iterations are split
  int64_t parts = 1;                       // into so many, each of which iterates over all panels
  std::optional<KBlocks> k_blocks = {};    // nothing where rows stay in cache until the next panel
  bool prefetches_rows = false;            // of the next row block
};

// The blocking of Winograd tiles: so many rows of them at a time, with a part of the filters.
struct WinogradBlocks {
  int64_t down = 0, across = 0;  // tiles of the image
  int64_t rows = 1;              // of tiles in a block
  int64_t count = 0;             // of blocks
  int64_t parts = 1;             // of the filters
  int64_t most_parts = 1;        // that there can be

  int64_t tiles() const { return rows * across; }
};
struct WinogradPlan {
  int64_t tile;
  WinogradBlocks blocks;
};

// The load of a constant that is packed, and its layout, still without a name. Each index of the load is an
// axis of its own, or 0.
struct PackB {
  loops::Scalar load;
  PackedB layout;
};

// The load of the other operand of a product with packed B that is packed into row blocks, and their height.
// Each index of the load is an axis of the rows, the reduced one, or 0.
struct PackA {
  loops::Scalar load;
  std::vector<loops::Axis> axes;  // that the rows run over, outermost first
  int64_t rows;
};

// Of a GPU: the tile of the result that a thread block computes, and the products of each step. Of the tile,
// each thread has a part, or each warp, where that multiplies matrices.
struct BlockTile {
  enum class Arithmetic : uint8_t {
    Fma,          // one product of f32 after the other
    TensorCores,  // operands of 16 bits
    Bf16x6,       // f32 in three parts of bf16, on tensor cores
  };

  Arithmetic arithmetic = Arithmetic::Fma;
  int64_t m = 0, n = 0, k = 0;
  int64_t part_m = 0, part_n = 0;
  int64_t stages = 1;          // steps whose operands are in shared memory or on their way there
  bool by_warpgroups = false;  // four warps multiply together, what shared memory has

  friend bool operator==(const BlockTile&, const BlockTile&) = default;
};

// What was weighed, and why it was not taken.
struct PlanCandidate {
  std::string name;                     // "gemm 13x32", "winograd 4x4"
  std::optional<double> estimate = {};  // nothing where none was needed
  std::string_view unit = "";           // of the estimate
  std::string declined = "";            // the reason; empty for what was chosen
};

enum class Decider : uint8_t { CostModel, Tuning, Numerics, Target, Shape };

struct ContractionPlan {
  Algorithm algorithm = Algorithm::Direct;
  std::optional<GemmTile> tile = {};  // nothing where tiling does not pay, and for Winograd
  int64_t accumulators = 1;           // of Gemv: independent sums that hide the latency of additions
  CacheBlocks cache_blocks = {};
  std::optional<PackB> pack_b = {};
  std::optional<PackA> pack_a = {};
  bool bf16x3 = false;  // f32 operands are split into three bf16
  std::optional<WinogradPlan> winograd = {};
  std::optional<BlockTile> block_tile = {};  // of a GPU, instead of all of the above
  // What tuning may choose otherwise: numerics, target and shape allow it.
  bool may_use_winograd = false, may_use_bf16x3 = false, may_pack_a = false;
  Decider decider = Decider::CostModel;
  std::vector<PlanCandidate> candidates = {};
};

}  // namespace tenon::lowering
