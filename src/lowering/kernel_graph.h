// kernel_graph.h — one definition of a program, on its way to become a part of a kernel.
#pragma once

#include <set>

#include "loops/definition.h"
#include "lowering/contraction_choice.h"
#include "target/target.h"

namespace tenon::lowering {

// Of a constant that lies in panels: what a block of lanes needs of it lies side by side. Its dimensions are
// those that are neither reduced nor run in lanes, the number of the panel, those that are reduced, in their
// order, and the lane. The last panel of each group goes back as far as it must to be whole.
struct PackedB {
  std::string buffer;
  int64_t lanes;
  int64_t groups = 1;        // as in GemmTile
  size_t row_axes = 1;       // of the product: blocks of rows run over so many
  bool rows_adjoin = false;  // in the other factor, each begins where what is summed of the one before ends
};

// How a constant lies in panels (see PackedB): the order of its dimensions before those of the lanes are cut
// into panels, how many of the last are reduced, how many lanes a panel has, and in how many groups they are.
struct PackedBLayout {
  std::vector<size_t> order;
  size_t reduced;
  int64_t lanes;
  int64_t groups = 1;

  size_t lane_dim() const { return order[order.size() - 1 - reduced]; }
  int64_t panels_of_group(int64_t all_lanes) const { return (all_lanes / groups + lanes - 1) / lanes; }
};

// Of a factor whose rows lie in blocks: what a block needs at one iteration of the sum lies side by side. Its
// dimensions are the number of the block, what is reduced, and the row. The last block goes back as far as it
// must to be whole.
struct PackedA {
  std::string buffer;
  int64_t rows;
};

struct Stage {
  loops::Definition definition;      // buffers have names that mean one thing in the program
  std::vector<std::string> sources;  // what the user's model calls it
  // Of a stage that reads what lies in another order than it was made in, as below: what it computes, in the
  // order that people know.
  std::optional<loops::Definition> as_written = {};
  // Of a convolution that is computed in tiles (schedule/cpu/winograd.h): their size. Its formula then reads
  // transformed weights, and stands for what is computed of them.
  std::optional<int64_t> winograd_tile = {};
  // Of a product with a constant: its formula reads the panels as if all lanes lay in the first.
  std::optional<PackedB> packed_b = {};
  // Of a product with panels: its formula reads the other factor as if all rows lay in the first block.
  std::optional<PackedA> packed_a = {};
  // Of a product, and of what only moves elements for one.
  std::optional<ContractionPart> contraction = {};
  // What stands around the results where their buffer is larger; 0 unless this says otherwise.
  std::optional<loops::Scalar> border = {};
};

// What was chosen for it, if anything was.
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
  bool stays = false;                // even where nobody reads what it writes
  bool loop = false;  // iterations one after the other, which may run beside those of other loops
};

// How the loops of a group are arranged.
enum class Pattern : uint8_t {
  Map,       // every stage has the same axes, and none reduces
  Rows,      // the stages share their first axes, and do the rest row by row
  Contract,  // the first stage reduces, and reads elements again and again; the others go on with its results
  FusedAttention,  // a product, what is done with its rows, a product that sums along them, and what
                   // goes on with its results: some rows at a time, from first to last
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
  // Of kernels that run one after the other on a tile of their images at a time (fusion/overlapped_tiles.h),
  // instead of a pattern: what each consists of, and how large the tiles of the last one's result are.
  std::vector<Group> parts = {};
  std::vector<TileSize> tile = {};
};

}  // namespace tenon::lowering
