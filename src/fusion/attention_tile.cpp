#include "fusion/attention_tile.h"

#include <algorithm>
#include <cmath>

#include "target/warpgroups.h"

namespace tenon::fusion {
namespace {

constexpr double kSizeOfUnknown = 512;  // that tiles are chosen for
constexpr double kKernel = 2200;        // nanoseconds that a kernel in a CUDA graph takes at least
constexpr double kWarpsOfFullRate = 8;  // on a multiprocessor: with fewer, instructions wait for each other
constexpr int64_t kMostHeld = 168;      // of a thread, in registers
constexpr int64_t kOtherRegisters = 48;

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

double count(const Dim& dim) {
  const std::optional<int64_t> known = dim.constant();
  return known ? static_cast<double>(*known) : kSizeOfUnknown;
}

// Of the rows that do not share keys and values.
double batches(const OnlineAttention& attention) {
  double all = 1;
  for (size_t i = 0; i < attention.rows.size(); ++i)
    if (i != attention.query)
      all *= attention.rows[i].size.is_constant() ? count(attention.rows[i].size) : 1;
  return all;
}

// Additions and multiplications of a multiprocessor in a nanosecond, by such instructions as there are
// between loads, folds and exponentials.
double operations_per_nanosecond(const Gpu& gpu, bool on_tensor_cores) {
  const double part = 0.35, tensor = gpu.architecture >= 90 ? 4096 : gpu.architecture == 89 ? 1024 : 2048;
  return part * (on_tensor_cores ? tensor * gpu.cycles_per_nanosecond
                                 : peak_flops(gpu) * 1e-9 / gpu.multiprocessors);
}

// Threads that add more rows at once load less for each; warpgroups load nothing.
double rate_of(const AttentionTile& tile) {
  if (tile.by_warpgroups)
    return 1.5;
  if (tile.on_tensor_cores)
    return tile.thread_rows == 2 ? 1 : 0.9;
  return tile.thread_rows == 4 ? 1 : tile.thread_rows == 2 ? 0.75 : 0.5;
}

// With tensor cores, weights and what threads of a row tell each other stay in registers.
int64_t shared_bytes(const AttentionTile& tile, const OnlineAttention& attention) {
  const int64_t size = tile.padded_size(attention.size) + tile.padding(),
                columns = tile.padded_columns(attention.columns) + tile.padding(),
                factors = (tile.queries() * size + tile.stages * tile.keys * (size + columns)) *
                          tile.element_bytes();
  if (tile.on_tensor_cores)
    return factors;
  return factors + tile.queries() * (tile.keys + AttentionTile::kPaddingOfWeights) * tile.element_bytes() +
         tile.queries() * tile.threads_of_row() * 4;
}

// In registers of 32 bits, of which two weights have one.
int64_t held_by_thread(const AttentionTile& tile, const OnlineAttention& attention) {
  const int64_t scores = tile.queries() * tile.keys / tile.threads(),
                results = tile.queries() * tile.padded_columns(attention.columns) / tile.threads();
  return scores + results + (tile.on_tensor_cores ? scores / 2 : 0);
}

std::optional<double> nanoseconds_of(const AttentionTile& tile, const OnlineAttention& attention,
                                     const Gpu& gpu) {
  const int64_t held = held_by_thread(tile, attention);
  const int64_t fitting =
      blocks_per_multiprocessor(gpu, tile.threads(), shared_bytes(tile, attention), held + kOtherRegisters);
  if (fitting < 1 || held > kMostHeld)
    return std::nullopt;
  const double blocks = batches(attention) *
                        std::ceil(count(attention.queries()) / static_cast<double>(tile.queries())),
               each = std::ceil(blocks / gpu.multiprocessors),
               warps = std::min(each, static_cast<double>(fitting)) * static_cast<double>(tile.warps),
               keys = std::ceil(count(attention.keys) / static_cast<double>(tile.keys)) *
                      static_cast<double>(tile.keys),
               row = static_cast<double>(tile.padded_size(attention.size) +
                                         tile.padded_columns(attention.columns));
  const double operations = 2 * static_cast<double>(tile.queries()) * keys * row,
               bytes = keys * row * static_cast<double>(tile.element_bytes()),
               rate = operations_per_nanosecond(gpu, tile.on_tensor_cores) * rate_of(tile) *
                      std::sqrt(std::min(1.0, warps / kWarpsOfFullRate)),
               bytes_per_nanosecond = 3 * gpu.bytes_per_nanosecond / gpu.multiprocessors;
  const double computing = operations / rate, loading = bytes / bytes_per_nanosecond;
  return kKernel + each * (tile.stages > 1 ? std::max(computing, loading) : computing + loading);
}

std::vector<AttentionTile> candidates(const OnlineAttention& attention, const Gpu& gpu) {
  constexpr int64_t kPanel = AttentionTile::kPanel;
  std::vector<AttentionTile> all;
  const bool on_tensor_cores = attention.has_halves() && gpu.architecture >= 80;
  if (on_tensor_cores && has_warpgroup_products(gpu) && attention.size % kPanel == 0 &&
      attention.columns % kPanel == 0)
    for (const int64_t warps : {8, 4})
      for (const int64_t keys : {64, 128})
        all.push_back({.on_tensor_cores = true,
                       .warps = warps,
                       .thread_rows = 1,
                       .keys = keys,
                       .stages = 2,
                       .by_warpgroups = true});
  for (const int64_t warps : {8, 4, 2, 1})
    for (const int64_t thread_rows : {4, 2, 1})
      for (const int64_t keys : {64, 32})
        if (!on_tensor_cores)
          all.push_back({.warps = warps, .thread_rows = thread_rows, .keys = keys});
        else if (thread_rows <= 2)
          for (const int64_t stages : {2, 1})
            all.push_back({.on_tensor_cores = true,
                           .warps = warps,
                           .thread_rows = thread_rows,
                           .keys = keys,
                           .stages = stages});
  return all;
}

}  // namespace

int64_t AttentionTile::padded_size(int64_t size) const {
  return round_up(size, by_warpgroups ? kPanel : on_tensor_cores ? 16 : 4);
}
int64_t AttentionTile::padded_columns(int64_t columns) const {
  return round_up(columns, by_warpgroups ? kPanel : on_tensor_cores ? 16 : 32);
}

std::optional<RatedAttentionTile> choose_attention_tile(const OnlineAttention& attention, const Gpu& gpu) {
  std::optional<RatedAttentionTile> best;
  for (const AttentionTile& tile : candidates(attention, gpu))
    if (const std::optional<double> time = nanoseconds_of(tile, attention, gpu);
        time && (!best || *time < best->nanoseconds))
      best = RatedAttentionTile{tile, *time};
  return best;
}

double nanoseconds_apart(const OnlineAttention& attention, const Gpu& gpu) {
  constexpr double kTile = 32, kKernels = 3, kMoves = 4;  // of scores and of weights, written and read
  const double queries = count(attention.queries()), keys = count(attention.keys),
               scores = batches(attention) * queries * keys,
               blocks = batches(attention) * std::ceil(queries / kTile) * std::ceil(keys / kTile),
               busy = std::min(1.0, blocks / gpu.multiprocessors),
               operations = 2 * scores * static_cast<double>(attention.size + attention.columns),
               bytes = kMoves * scores * (attention.has_halves() ? 3 : 4);
  const double in_cache = bytes / kMoves * 2 < static_cast<double>(gpu.level2_bytes) ? 3 : 1;
  return kKernels * kKernel +
         operations / (operations_per_nanosecond(gpu, attention.has_halves()) * gpu.multiprocessors * busy) +
         bytes / (gpu.bytes_per_nanosecond * in_cache);
}

}  // namespace tenon::fusion
