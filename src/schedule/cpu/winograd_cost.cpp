#include "schedule/cpu/winograd_cost.h"

#include <algorithm>

namespace tenon::schedule {

using lowering::ContractionChoice;
using lowering::WinogradBlocks;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t lanes_of_tiles(const Target& target) { return target.vector_bytes / 4; }

int64_t filters_at_once(int64_t filters, const Target& target) {
  return filters % (2 * lanes_of_tiles(target)) == 0 ? 2 * lanes_of_tiles(target) : lanes_of_tiles(target);
}

namespace {

// In nanoseconds of a core, roughly.
double time_of_products(double products, const Target& target) {
  return products / static_cast<double>(lanes_of_tiles(target) * 4);
}
// Loads of weights overlap with products: from memory, unless they stay in a core's cache.
double time_of_fetching(double weights, bool stay) { return weights * sizeof(float) / (stay ? 40 : 6.5); }
// Of numbers that one step stores and the next loads.
double time_of_passing(double numbers, bool near) { return numbers * sizeof(float) / (near ? 160 : 25); }

// Until the last thread has done its share, in nanoseconds. Here and below, threads take whole iterations:
// three iterations take two threads as long as four.
double time_of_direct(const Conv3x3& conv, const Context& context) {
  const int64_t at_once = filters_at_once(conv.filters, context.target), panels = conv.filters / at_once;
  const double weights = 9.0 * static_cast<double>(conv.all_channels() * at_once),
               line = time_of_products(weights * static_cast<double>(conv.width), context.target);
  return std::max(static_cast<double>(divide_up(conv.height * panels, context.threads)) * line,
                  time_of_fetching(weights * static_cast<double>(panels), false) / context.threads);
}
double time_of_blocks(const WinogradBlocks& blocks, const Conv3x3& conv, int64_t tile,
                      const Context& context) {
  const int64_t at_once = filters_at_once(conv.filters, context.target),
                panels = divide_up(conv.filters / at_once, blocks.parts), filters = panels * at_once,
                iterations = divide_up(blocks.count * blocks.parts, context.threads);
  const auto elements = static_cast<double>((tile + 2) * (tile + 2)),
             all_weights = elements * static_cast<double>(conv.all_channels() * conv.filters),
             weights = elements * static_cast<double>(conv.all_channels() * filters),
             tiles = elements * static_cast<double>(blocks.tiles()),
             seen = tiles * static_cast<double>(conv.all_channels()),
             made = tiles * static_cast<double>(at_once);
  constexpr double instructions = 9;  // for each element that is transformed
  const double cache = static_cast<double>(context.target.caches.level2) / sizeof(float);
  const double multiplying = time_of_products(weights * static_cast<double>(blocks.tiles()), context.target),
               transforming = time_of_products(instructions * (seen + tiles * static_cast<double>(filters)),
                                               context.target),
               passing = time_of_passing(
                   seen * static_cast<double>(1 + panels) + 2 * made * static_cast<double>(panels),
                   seen + made <= cache / 2);
  const double fetching =
      std::max(time_of_fetching(all_weights, false) / context.threads,
               time_of_fetching(weights * static_cast<double>(iterations), all_weights <= cache / 2));
  // Load imbalance: one thread ends later by part of an iteration.
  constexpr double kLate = 0.25;
  const auto count = static_cast<double>(iterations);
  return (std::max(count * multiplying, fetching) + count * (transforming + passing)) * (1 + kLate / count);
}

// The fastest blocking. Threads that share the filters of a block each transform its tiles.
WinogradBlocks fastest_blocks(const Conv3x3& conv, int64_t tile, const Context& context) {
  const int64_t down = divide_up(conv.height, tile), across = divide_up(conv.width, tile),
                panels = conv.filters / filters_at_once(conv.filters, context.target),
                most_parts = std::min<int64_t>(panels, int64_t{4} * context.threads);
  std::optional<WinogradBlocks> best;
  double least = 0;
  for (int64_t rows = down; rows >= 1; --rows)
    for (int64_t parts = 1; parts <= most_parts; ++parts) {
      const WinogradBlocks blocks{.down = down,
                                  .across = across,
                                  .rows = rows,
                                  .count = divide_up(down, rows),
                                  .parts = parts,
                                  .most_parts = panels};
      const double time = time_of_blocks(blocks, conv, tile, context);
      if (!best || time < least) {
        best = blocks;
        least = time;
      }
    }
  return *best;
}

}  // namespace

WinogradBlocks choose_winograd_blocks(const Conv3x3& conv, int64_t tile, const Context& context,
                                      const ContractionChoice& choice) {
  WinogradBlocks blocks = fastest_blocks(conv, tile, context);
  blocks.rows = std::clamp<int64_t>(choice.tile_rows.value_or(blocks.rows), 1, blocks.down);
  blocks.count = divide_up(blocks.down, blocks.rows);
  blocks.parts = std::clamp<int64_t>(choice.filter_parts.value_or(blocks.parts), 1, blocks.most_parts);
  return blocks;
}

bool may_use_winograd(const Conv3x3& conv, const Target& target) {
  constexpr int64_t largest = 1 << 20;  // along any axis; there is no memory for more, and it would overflow
  return conv.channels % lanes_of_tiles(target) == 0 && conv.filters % lanes_of_tiles(target) == 0 &&
         std::max({conv.height, conv.width, conv.all_channels(), conv.filters}) <= largest &&
         std::min({conv.height, conv.width, conv.all_channels(), conv.filters}) >= 1;
}

WinogradEstimate estimate_winograd(const Conv3x3& conv, const Target& target) {
  const Context few{target, 2};
  WinogradEstimate estimate{.direct = time_of_direct(conv, few)};
  for (const int64_t tile : {2, 4})
    estimate.by_tile.emplace(tile, time_of_blocks(fastest_blocks(conv, tile, few), conv, tile, few));
  return estimate;
}

std::optional<int64_t> WinogradEstimate::best_tile() const {
  constexpr double kMargin = 0.85;  // for the error of the estimate
  std::optional<int64_t> best;
  double least = kMargin * direct;
  for (const auto& [tile, time] : by_tile)
    if (time < least) {
      best = tile;
      least = time;
    }
  return best;
}

}  // namespace tenon::schedule
