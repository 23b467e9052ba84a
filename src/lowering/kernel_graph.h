// kernel_graph.h — the kernel graph: what a graph is lowered to. Its nodes define the elements of buffers,
// and fusion groups them into kernels.
//
//   fused kernel graph "g" {
//     input v0: f32[n,40] on cpu
//     constant v1: f32[40,53] on cpu = f32[40,53] hash 0x…
//     output v2: f32[n,53] on cpu
//     kernel contract of 2 shared axes {
//       define v2 for i0 in 0..n, i1 in 0..53 over k0 in 0..40 from "MatMul_0" {
//         v2[i0,i1] = 0
//         v2[i0,i1] += v0[i0,k0] * v1[k0,i1]
//       }
//     }
//     return v2
//   }
//
// Loops speak of buffers by name, everything else by id.
#pragma once

#include <compare>
#include <memory>
#include <set>
#include <unordered_map>

#include "ir/graph.h"
#include "loops/definition.h"
#include "lowering/contraction_choice.h"
#include "lowering/image_layout.h"
#include "target/target.h"

namespace tenon::lowering {

struct BufferId {
  size_t number = 0;

  friend auto operator<=>(BufferId, BufferId) = default;
};

// A packed constant operand (B): what a block of lanes needs is contiguous. Its dimensions are the batch, the
// panel, the reduced ones in order, and the lane. The last panel of each group overlaps the one before to be
// whole.
struct PackedB {
  std::string buffer;
  int64_t lanes;
  int64_t groups = 1;        // as in GemmTile
  size_t row_axes = 1;       // of the product: row blocks span so many
  bool rows_adjoin = false;  // in the other operand, rows are contiguous

  friend bool operator==(const PackedB&, const PackedB&) = default;
};

// The layout of packed B: the order of its dimensions before lanes are cut into panels, how many of the last
// are reduced, the lanes of a panel, and the groups of lanes.
struct PackedBLayout {
  std::vector<size_t> order;
  size_t reduced;
  int64_t lanes;
  int64_t groups = 1;

  friend bool operator==(const PackedBLayout&, const PackedBLayout&) = default;

  size_t lane_dim() const { return order[order.size() - 1 - reduced]; }
  int64_t panels_of_group(int64_t all_lanes) const { return (all_lanes / groups + lanes - 1) / lanes; }
};

// A packed operand of rows (A): what a row block needs at one iteration of the sum is contiguous. Its
// dimensions are the block, the reduced one, and the row. The last block overlaps the one before to be whole.
struct PackedA {
  std::string buffer;
  int64_t rows;

  friend bool operator==(const PackedA&, const PackedA&) = default;
};

struct ContractionPlan;

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
  // Of a reduction: how it is computed, once that is decided (lowering/contraction_plan.h).
  std::shared_ptr<const ContractionPlan> plan = nullptr;
  // The padding value of the results where their buffer is larger; 0 unless given.
  std::optional<loops::Scalar> border = {};
  std::vector<std::string> refusing = {};  // of the sources: those that fail for some elements, by an index
                                           // out of range, say
};

// The choice for it, if any.
inline ContractionChoice choice_of(const Stage& stage) {
  return stage.contraction ? stage.contraction->choice : ContractionChoice();
}

// The buffers that a stage reads.
std::set<std::string> buffers_read(const Stage& stage);

// --- buffers ---

enum class Device : uint8_t { Cpu };

// Where a buffer comes from, or goes to. A constant is known before the program runs.
enum class Home : uint8_t { Input, Constant, Output, Intermediate };

// Row-major, with the dimensions in the order of the graph; padding, if any, counts in the sizes.
struct PlainLayout {
  friend bool operator==(const PlainLayout&, const PlainLayout&) = default;
};
// Of a constant: row-major, with its dimensions in this order, the outermost first.
struct PermutedLayout {
  std::vector<size_t> order;

  friend bool operator==(const PermutedLayout&, const PermutedLayout&) = default;
};
// Packed B, made of another constant in the layout of the graph.
struct PackedWeights {
  BufferId weights;
  PackedBLayout order;
  bool split = false;  // into three bf16 (see bf16x3_matmul.h)

  friend bool operator==(const PackedWeights&, const PackedWeights&) = default;
};
// Weights of a Winograd convolution, transformed.
struct TransformedWeights {
  BufferId weights;
  int64_t tile;

  friend bool operator==(const TransformedWeights&, const TransformedWeights&) = default;
};
// An image has a layout that was chosen, even where that is the order of the graph.
using Layout = std::variant<PlainLayout, ImageLayout, PermutedLayout, PackedWeights, TransformedWeights>;

struct KernelBuffer {
  loops::Buffer elements;  // its name as definitions spell it, dtype, and sizes in memory
  Home home = Home::Intermediate;
  Layout layout = {};
  // Of a constant: the dimension of the graph's tensor along which consecutive elements, four of a byte or
  // two of 16 bits, are packed into a word of 32 bits, the first lowest (schedule/cpu/vnni_pack.h). The
  // layout is that of the words.
  std::optional<size_t> vnni_dim = {};
  Device device = Device::Cpu;
  Value value = {};  // of the graph, if it is one
  // Of a value that no kernel can read: a sequence, strings, a tensor of unknown rank.
  std::optional<Type> host_type = {};

  const std::string& name() const { return elements.name; }
  bool is_image() const { return std::holds_alternative<ImageLayout>(layout); }
  Type type() const { return host_type ? *host_type : Type::tensor(elements.dtype, elements.sizes); }
  // What a packed or transformed constant is made of; nothing of other buffers.
  std::optional<BufferId> made_of() const;
};

class BufferTable {
 public:
  BufferId add(KernelBuffer buffer);  // of a new name

  const KernelBuffer& operator[](BufferId id) const { return buffers_[id.number]; }
  KernelBuffer& operator[](BufferId id) { return buffers_[id.number]; }
  size_t size() const { return buffers_.size(); }
  auto begin() const { return buffers_.begin(); }
  auto end() const { return buffers_.end(); }

  std::optional<BufferId> find(const std::string& name) const;
  BufferId id_of(const std::string& name) const;  // of a buffer there is
  bool contains(const std::string& name) const { return ids_.contains(name); }
  const loops::Buffer& at(const std::string& name) const { return buffers_[id_of(name).number].elements; }
  loops::Buffer& at(const std::string& name) { return buffers_[id_of(name).number].elements; }

 private:
  std::vector<KernelBuffer> buffers_;  // by id
  std::unordered_map<std::string, BufferId> ids_;
};

// --- nodes ---

// A step of a program as fusion sees it.
struct KernelNode {
  enum class Kind : uint8_t {
    Definition,  // a stage, which fusion may inline and group
    Nest,        // a kernel by itself
    Host,        // a call of the host
    Alias,       // the same elements under another shape
  };

  Kind kind = Kind::Definition;
  std::optional<Stage> stage = {};         // of a definition
  std::optional<loops::Kernel> nest = {};  // of a nest: its inputs and outputs are the operands and results
  const Node* node = nullptr;              // of the graph, if it is one; of a host call, what is called
  std::vector<std::string> sources = {};   // of a nest, or an alias: what the user's model calls it
  std::vector<BufferId> operands = {}, results = {};  // of others than definitions, in order
  std::set<BufferId> reads = {}, writes = {};
  std::set<BufferId> after = {};  // buffers that it does not read, but must wait for
  bool stays = false;             // even where nothing reads what it writes
  bool loop = false;              // sequential iterations, which may run concurrently with other loops
};

// A definition, with the buffers that it reads and writes.
KernelNode make_node(Stage stage, const BufferTable& buffers);
// After a change of its expression.
void update_reads(KernelNode& node, const BufferTable& buffers);

// --- groups ---

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

  friend bool operator==(const TileSize&, const TileSize&) = default;
};

// Nodes that become one kernel, or one other step, in the order in which they run.
struct Group {
  std::vector<size_t> nodes;
  Pattern pattern = Pattern::Map;
  int64_t rows = 0;  // of Rows and FusedAttention: how many axes are shared
  // Of overlapped tiling (fusion/overlapped_tiles.h), instead of a pattern: the stages of each kernel, and
  // the tile sizes of the last result.
  std::vector<Group> parts = {};
  std::vector<TileSize> tile = {};
};

struct KernelGraph {
  std::string name;
  BufferTable buffers;
  std::vector<BufferId> inputs, outputs;
  std::vector<KernelNode> nodes;  // in an order in which they can run
  std::vector<Group> groups;      // none before fusion; then each node is in one
  // Of a graph that was parsed: what holds its constants, and the nodes that it calls on the host.
  std::vector<std::shared_ptr<const Graph>> host = {};

  std::map<const ValueData*, BufferId> values = {};  // of these graphs, or of the one that was lowered

  BufferId buffer_of(Value value) const { return values.at(value.data()); }
  // Whether a buffer holds a constant of the graph, and not one that is made of it.
  bool is_constant(const std::string& buffer) const;
  // What is needed besides what nodes read.
  std::set<BufferId> kept() const { return {outputs.begin(), outputs.end()}; }
};

}  // namespace tenon::lowering
