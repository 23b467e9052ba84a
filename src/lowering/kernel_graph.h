// kernel_graph.h — stages on their way to become parts of kernels, with the layouts of their operands.
#pragma once

#include <set>

#include "loops/definition.h"
#include "lowering/contraction_choice.h"
#include "target/target.h"

namespace tenon::lowering {

// A packed constant operand (B): what a block of lanes needs is contiguous. Its dimensions are the batch, the
// panel, the reduced ones in order, and the lane. The last panel of each group overlaps the one before to be
// whole.
struct PackedB {
  std::string buffer;
  int64_t lanes;
  int64_t groups = 1;        // as in GemmTile
  size_t row_axes = 1;       // of the product: row blocks span so many
  bool rows_adjoin = false;  // in the other operand, rows are contiguous
};

// The layout of packed B: the order of its dimensions before lanes are cut into panels, how many of the last
// are reduced, the lanes of a panel, and the groups of lanes.
struct PackedBLayout {
  std::vector<size_t> order;
  size_t reduced;
  int64_t lanes;
  int64_t groups = 1;

  size_t lane_dim() const { return order[order.size() - 1 - reduced]; }
  int64_t panels_of_group(int64_t all_lanes) const { return (all_lanes / groups + lanes - 1) / lanes; }
};

// A packed operand of rows (A): what a row block needs at one iteration of the sum is contiguous. Its
// dimensions are the block, the reduced one, and the row. The last block overlaps the one before to be whole.
struct PackedA {
  std::string buffer;
  int64_t rows;
};

struct Stage {
  loops::Definition definition;      // buffers have names that mean one thing in the program
  std::vector<std::string> sources;  // what the user's model calls it
  // Of a stage with packed or permuted operands, as below: what it computes, in the layout of the graph.
  std::optional<loops::Definition> as_written = {};
  // Of a Winograd convolution (schedule/cpu/winograd.h): its tile. Its expression then reads transformed
  // weights and stands for the whole algorithm.
  std::optional<int64_t> winograd_tile = {};
  // Of a product with packed B: its expression reads the panels as if all lanes were in the first.
  std::optional<PackedB> packed_b = {};
  // Of a product with packed A: its expression reads it as if all rows were in the first block.
  std::optional<PackedA> packed_a = {};
  // Of a contraction, and of what only packs for one.
  std::optional<ContractionPart> contraction = {};
  // The padding value of the results where their buffer is larger; 0 unless given.
  std::optional<loops::Scalar> border = {};
};

// The choice for it, if any.
inline ContractionChoice choice_of(const Stage& stage) {
  return stage.contraction ? stage.contraction->choice : ContractionChoice();
}

// The buffers that a stage reads.
std::set<std::string> buffers_read(const Stage& stage);

// A step of a program as fusion sees it: a stage, or something else that reads and writes buffers.
struct Item {
  std::optional<Stage> stage;
  std::set<std::string> reads, writes;
  std::set<std::string> after = {};  // buffers that it does not read, but must wait for
  bool stays = false;                // even where nothing reads what it writes
  bool loop = false;                 // sequential iterations, which may run concurrently with other loops
};

// The pattern of a group's loop nest.
enum class Pattern : uint8_t {
  Map,             // pointwise: every stage has the same axes, and none reduces
  Rows,            // the stages share their first axes, and run row by row
  Contract,        // the first stage is a contraction, the others are its epilogue
  FusedAttention,  // q kᵀ, row-wise stages, the product with v, and its epilogue, by blocks of rows
};

// How much of a result is computed at a time, along one of its dimensions.
struct TileSize {
  size_t dim;
  int64_t rows;
};

// Items that become one kernel, or one other step, in the order in which they run.
struct Group {
  std::vector<size_t> items;
  Pattern pattern = Pattern::Map;
  int64_t rows = 0;  // of Rows and FusedAttention: how many axes are shared
  // Of overlapped tiling (fusion/overlapped_tiles.h), instead of a pattern: the stages of each kernel, and
  // the tile sizes of the last result.
  std::vector<Group> parts = {};
  std::vector<TileSize> tile = {};
};

}  // namespace tenon::lowering
