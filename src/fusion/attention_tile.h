// attention_tile.h — how much of fused attention a thread block of a GPU computes at a time, and how long all
// of it takes.
#pragma once

#include "fusion/online_attention.h"
#include "target/gpu.h"

namespace tenon::fusion {

// Blocks of queries by blocks of keys. Each warp has rows of its own: with tensor cores 16 for each of
// thread_rows, else 4, of which eight threads share each. Warpgroups multiply what lies in shared memory in
// panels of 64 columns.
struct AttentionTile {
  bool on_tensor_cores = false;
  int64_t warps = 4;
  int64_t thread_rows = 1;
  int64_t keys = 64;
  int64_t stages = 1;  // blocks of keys that are in shared memory or on their way there
  bool by_warpgroups = false;

  int64_t threads() const { return warps * kWarpThreads; }
  int64_t queries() const { return warps * thread_rows * (on_tensor_cores ? 16 : 4); }
  int64_t threads_of_row() const { return on_tensor_cores ? 4 : 8; }
  int64_t element_bytes() const { return on_tensor_cores ? 2 : 4; }
  // Rows of q, k and v in shared memory: whole instructions, and the next row in other banks.
  int64_t padded_size(int64_t size) const;
  int64_t padded_columns(int64_t columns) const;
  int64_t padding() const { return by_warpgroups ? 0 : 16 / element_bytes(); }
  static constexpr int64_t kPaddingOfWeights = 8;
  static constexpr int64_t kPanel = 64;  // columns

  friend bool operator==(const AttentionTile&, const AttentionTile&) = default;
};

struct RatedAttentionTile {
  AttentionTile tile;
  double nanoseconds;
};

// The fastest by estimate; nothing where no thread block has room for one.
std::optional<RatedAttentionTile> choose_attention_tile(const OnlineAttention& attention, const Gpu& gpu);

// By estimate: as kernels of their own, which pass the scores and the weights through memory.
double nanoseconds_apart(const OnlineAttention& attention, const Gpu& gpu);

}  // namespace tenon::fusion
