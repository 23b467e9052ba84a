// stage.h — one definition of a program, on its way to become a part of a kernel.
#pragma once

#include <set>

#include "fusion/contraction_choice.h"
#include "loops/definition.h"
#include "target/target.h"

namespace tenon {

// Of a constant that lies in panels: what a block of lanes needs of it lies side by side. Its dimensions are
// those that are neither reduced nor run in lanes, the number of the panel, those that are reduced, in their
// order, and the lane. The last panel of each group goes back as far as it must to be whole.
struct Panels {
  std::string buffer;
  int64_t lanes;
  int64_t groups = 1;        // as in ContractionShape
  size_t row_axes = 1;       // of the product: blocks of rows run over so many
  bool rows_adjoin = false;  // in the other factor, each begins where what is summed of the one before ends
};

// Of a factor whose rows lie in blocks: what a block needs at one turn of the sum lies side by side. Its
// dimensions are the number of the block, what is reduced, and the row. The last block goes back as far as it
// must to be whole.
struct RowBlocks {
  std::string buffer;
  int64_t rows;
};

struct Stage {
  loops::Definition definition;      // buffers have names that mean one thing in the program
  std::vector<std::string> sources;  // what the user's model calls it
  // Of a stage that reads what lies in another order than it was made in, as below: what it computes, in the
  // order that people know.
  std::optional<loops::Definition> as_written = {};
  // Of a convolution that is computed in tiles (schedule/winograd.h): their size. Its formula then reads
  // transformed weights, and stands for what is computed of them.
  std::optional<int64_t> tile = {};
  // Of a product with a constant: its formula reads the panels as if all lanes lay in the first.
  std::optional<Panels> panels = {};
  // Of a product with panels: its formula reads the other factor as if all rows lay in the first block.
  std::optional<RowBlocks> row_blocks = {};
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
  bool loop = false;                 // turns one after the other, which may run beside those of other loops
};

// Items without the stages that are better computed where they are needed: their formulas stand there
// instead. What is in `kept` stays.
std::vector<Item> inline_stages(std::vector<Item> items, const std::set<std::string>& kept,
                                const Target& target);

// How the loops of a group are arranged.
enum class Pattern : uint8_t {
  Map,       // every stage has the same axes, and none reduces
  Rows,      // the stages share their first axes, and do the rest row by row
  Contract,  // the first stage reduces, and reads elements again and again; the others go on with its results
  Strips,  // a product, what is done with its rows, a product that sums along them, and what goes on with its
           // results: some rows at a time, from first to last
};

// How much of a result is computed at a time, along one of its dimensions.
struct BandSize {
  size_t dim;
  int64_t rows;
};

// Items that become one kernel, or one other step, in the order in which they run.
struct Group {
  std::vector<size_t> items;
  Pattern pattern = Pattern::Map;
  int64_t rows = 0;  // of Rows and Strips: how many axes are shared
  // Of kernels that run one after the other on a band of their images at a time (bands.h), instead of a
  // pattern: what each consists of, and how large the bands of the last one's result are.
  std::vector<Group> parts = {};
  std::vector<BandSize> band = {};
};

// What one group writes and an item of another reads, and why they are not one.
struct Missed {
  std::string buffer;
  size_t reader;
  std::string reason;
};

struct Grouping {
  std::vector<Group> groups;  // each item is in one; in an order in which they can run
  std::vector<Missed> missed;
};

// What is in `kept` is needed besides what items read.
Grouping group_items(const std::vector<Item>& items, const std::set<std::string>& kept, const Target& target);

// In an order in which less memory is in use at once, where there is one, and loops that do not need each
// other follow one another. `views` tells of buffers that are others under another shape.
void order_groups(std::vector<Group>& groups, const std::vector<Item>& items,
                  const std::map<std::string, loops::Buffer>& buffers,
                  const std::map<std::string, std::string>& views);

}  // namespace tenon
