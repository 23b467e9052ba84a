#include "schedule/cpu/winograd_cost.h"

#include <algorithm>

namespace tenon::schedule {

using lowering::ContractionChoice;

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

// Until the last core has done its share, in nanoseconds. Here and below, cores take whole iterations: three
// iterations take two cores as long as four.
double time_of_direct(const Conv3x3& conv, const Target& target) {
  const int64_t at_once = filters_at_once(conv.filters, target), panels = conv.filters / at_once;
  const double weights = 9.0 * static_cast<double>(conv.all_channels() * at_once),
               line = time_of_products(weights * static_cast<double>(conv.width), target);
  return std::max(static_cast<double>(divide_up(conv.height * panels, target.cores)) * line,
                  time_of_fetching(weights * static_cast<double>(panels), false) / target.cores);
}
double time_of_blocks(const TileBlocks& blocks, const Conv3x3& conv, int64_t tile, const Target& target) {
  const int64_t at_once = filters_at_once(conv.filters, target),
                panels = divide_up(conv.filters / at_once, blocks.parts), filters = panels * at_once,
                iterations = divide_up(blocks.count * blocks.parts, target.cores);
  const auto elements = static_cast<double>((tile + 2) * (tile + 2)),
             all_weights = elements * static_cast<double>(conv.all_channels() * conv.filters),
             weights = elements * static_cast<double>(conv.all_channels() * filters),
             tiles = elements * static_cast<double>(blocks.tiles()),
             seen = tiles * static_cast<double>(conv.all_channels()),
             made = tiles * static_cast<double>(at_once);
  constexpr double instructions = 9;  // for each element that is transformed
  const double cache = static_cast<double>(target.caches.level2) / sizeof(float);
  const double multiplying = time_of_products(weights * static_cast<double>(blocks.tiles()), target),
               transforming =
                   time_of_products(instructions * (seen + tiles * static_cast<double>(filters)), target),
               passing = time_of_passing(
                   seen * static_cast<double>(1 + panels) + 2 * made * static_cast<double>(panels),
                   seen + made <= cache / 2);
  const double fetching =
      std::max(time_of_fetching(all_weights, false) / target.cores,
               time_of_fetching(weights * static_cast<double>(iterations), all_weights <= cache / 2));
  // Load imbalance: one core ends later by part of an iteration.
  constexpr double kLate = 0.25;
  const auto count = static_cast<double>(iterations);
  return (std::max(count * multiplying, fetching) + count * (transforming + passing)) * (1 + kLate / count);
}

// The fastest blocking. Cores that share the filters of a block each transform its tiles.
TileBlocks blocks_of(const Conv3x3& conv, int64_t tile, const Target& target) {
  const int64_t down = divide_up(conv.height, tile), across = divide_up(conv.width, tile),
                panels = conv.filters / filters_at_once(conv.filters, target),
                most_parts = std::min<int64_t>(panels, int64_t{4} * target.cores);
  std::optional<TileBlocks> best;
  double least = 0;
  for (int64_t rows = down; rows >= 1; --rows)
    for (int64_t parts = 1; parts <= most_parts; ++parts) {
      const TileBlocks blocks{.down = down,
                              .across = across,
                              .rows = rows,
                              .count = divide_up(down, rows),
                              .parts = parts,
                              .most_parts = panels};
      const double time = time_of_blocks(blocks, conv, tile, target);
      if (!best || time < least) {
        best = blocks;
        least = time;
      }
    }
  return *best;
}

}  // namespace

TileBlocks blocks_of(const Conv3x3& conv, int64_t tile, const Target& target,
                     const ContractionChoice& choice) {
  TileBlocks blocks = blocks_of(conv, tile, target);
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

std::optional<int64_t> choose_winograd_tile(const Conv3x3& conv, const Target& target,
                                            const ContractionChoice& choice) {
  if (!may_use_winograd(conv, target) || choice.tile == 0)
    return std::nullopt;
  if (choice.tile == 2 || choice.tile == 4)
    return choice.tile;
  // The algorithm, and so the rounding, must not depend on the number of threads. With many, both take about
  // as long, so choose for few.
  Target few = target;
  few.cores = 2;
  std::optional<int64_t> best;
  double least = 0.85 * time_of_direct(conv, few);  // a margin for the error of the estimate
  for (int64_t tile : {2, 4})
    if (const double time = time_of_blocks(blocks_of(conv, tile, few), conv, tile, few); time < least) {
      best = tile;
      least = time;
    }
  return best;
}

}  // namespace tenon::schedule
