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
// Weights are fetched while others are multiplied: from memory, unless a core has them in its cache.
double time_of_fetching(double weights, bool stay) { return weights * sizeof(float) / (stay ? 40 : 6.5); }
// Of numbers that one step leaves for the next, which waits for them.
double time_of_passing(double numbers, bool near) { return numbers * sizeof(float) / (near ? 160 : 25); }

// Until the last core has done its share of the iterations, in nanoseconds. Here and below, the cores take
// whole iterations: three iterations take two cores as long as four.
double time_of_windows(const Conv3x3& sums, const Target& target) {
  const int64_t at_once = filters_at_once(sums.filters, target), panels = sums.filters / at_once;
  const double weights = 9.0 * static_cast<double>(sums.all_channels() * at_once),
               line = time_of_products(weights * static_cast<double>(sums.width), target);
  return std::max(static_cast<double>(divide_up(sums.height * panels, target.cores)) * line,
                  time_of_fetching(weights * static_cast<double>(panels), false) / target.cores);
}
double time_of_blocks(const TileBlocks& blocks, const Conv3x3& sums, int64_t tile, const Target& target) {
  const int64_t at_once = filters_at_once(sums.filters, target),
                panels = divide_up(sums.filters / at_once, blocks.parts), filters = panels * at_once,
                iterations = divide_up(blocks.count * blocks.parts, target.cores);
  const auto elements = static_cast<double>((tile + 2) * (tile + 2)),
             all_weights = elements * static_cast<double>(sums.all_channels() * sums.filters),
             weights = elements * static_cast<double>(sums.all_channels() * filters),
             tiles = elements * static_cast<double>(blocks.tiles()),
             seen = tiles * static_cast<double>(sums.all_channels()),
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
  // One core is later than the others by a part of a iteration.
  constexpr double kLate = 0.25;
  const auto count = static_cast<double>(iterations);
  return (std::max(count * multiplying, fetching) + count * (transforming + passing)) * (1 + kLate / count);
}

// Those that take the least time. Cores that share the filters of a block each transform its tiles for
// themselves.
TileBlocks blocks_of(const Conv3x3& sums, int64_t tile, const Target& target) {
  const int64_t down = divide_up(sums.height, tile), across = divide_up(sums.width, tile),
                panels = sums.filters / filters_at_once(sums.filters, target),
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
      const double time = time_of_blocks(blocks, sums, tile, target);
      if (!best || time < least) {
        best = blocks;
        least = time;
      }
    }
  return *best;
}

}  // namespace

TileBlocks blocks_of(const Conv3x3& sums, int64_t tile, const Target& target,
                     const ContractionChoice& choice) {
  TileBlocks blocks = blocks_of(sums, tile, target);
  blocks.rows = std::clamp<int64_t>(choice.tile_rows.value_or(blocks.rows), 1, blocks.down);
  blocks.count = divide_up(blocks.down, blocks.rows);
  blocks.parts = std::clamp<int64_t>(choice.filter_parts.value_or(blocks.parts), 1, blocks.most_parts);
  return blocks;
}

bool may_use_winograd(const Conv3x3& sums, const Target& target) {
  constexpr int64_t largest = 1 << 20;  // along any axis; there is no memory for more, and it would overflow
  return sums.channels % lanes_of_tiles(target) == 0 && sums.filters % lanes_of_tiles(target) == 0 &&
         std::max({sums.height, sums.width, sums.all_channels(), sums.filters}) <= largest &&
         std::min({sums.height, sums.width, sums.all_channels(), sums.filters}) >= 1;
}

std::optional<int64_t> choose_winograd_tile(const Conv3x3& sums, const Target& target,
                                            const ContractionChoice& choice) {
  if (!may_use_winograd(sums, target) || choice.tile == 0)
    return std::nullopt;
  if (choice.tile == 2 || choice.tile == 4)
    return choice.tile;
  // What is computed how must not follow from how many threads will run it. With many, both take about as
  // long, so it is what is best for few.
  Target few = target;
  few.cores = 2;
  std::optional<int64_t> best;
  double least = 0.85 * time_of_windows(sums, few);  // of what is only estimated, a part must be won
  for (int64_t tile : {2, 4})
    if (const double time = time_of_blocks(blocks_of(sums, tile, few), sums, tile, few); time < least) {
      best = tile;
      least = time;
    }
  return best;
}

}  // namespace tenon::schedule
