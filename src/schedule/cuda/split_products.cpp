#include "schedule/cuda/split_products.h"

#include <algorithm>
#include <cmath>

#include "schedule/cuda/reductions.h"
#include "schedule/cuda/select_contraction.h"

namespace tenon::schedule::cuda {

using loops::Axis;
using loops::Buffer;
using loops::Definition;

namespace {

constexpr int64_t kMostParts = 8;        // which one expression adds
constexpr int64_t kLeastProducts = 64;   // of each part
constexpr double kCyclesOfStep = 1400;   // that a thread block takes for one step of k, however small
constexpr double kMultiplyAdds = 128;    // of a multiprocessor in a cycle
constexpr double kShareOfPeak = 0.6;     // that tiles reach with enough of them
constexpr int64_t kThreadsAtOnce = 512;  // of a multiprocessor, with the registers of tiles
constexpr double kMostOfWhole = 0.85;    // of the time without, for estimates are rough
constexpr double kMuchLess = 0.93;       // that more parts must save
constexpr double kCacheRate = 1.2;       // against that of memory

// Tiles of one size, all with as many products for each element.
struct Tiling {
  int64_t blocks;
  double nanoseconds;
};

int64_t count_blocks(const MatrixProduct& product, int64_t m, int64_t n) {
  return (ceil_div(size_of(product.m()), m) * ceil_div(size_of(product.n()), n) * size_of(product.batch))
      .constant()
      .value();
}

// Blocks on one multiprocessor fill each other's waits, up to what it multiplies in that time.
Tiling tiling_by_fma(const MatrixProduct& product, const Gpu& gpu) {
  const ContractionTile tile = choose_tile(product, gpu);
  const int64_t k = *size_of(product.k).constant(), blocks = count_blocks(product, tile.m, tile.n);
  const auto steps = static_cast<double>((k + tile.k - 1) / tile.k);
  const double multiplying = static_cast<double>(tile.m * tile.n * tile.k) / (kMultiplyAdds * kShareOfPeak);
  const int64_t at_once = std::max<int64_t>(kThreadsAtOnce / tile.threads(), 1);
  const auto cycles_of = [&](int64_t resident) {
    return resident == 0 ? 0 : steps * std::max(kCyclesOfStep, static_cast<double>(resident) * multiplying);
  };
  const int64_t each = (blocks + gpu.multiprocessors - 1) / gpu.multiprocessors;
  const double cycles = static_cast<double>(each / at_once) * cycles_of(at_once) + cycles_of(each % at_once);
  return {blocks, cycles / gpu.cycles_per_nanosecond};
}

// By the arithmetic that is chosen for it.
Tiling tiling_of(const MatrixProduct& product, const Gpu& gpu, NumericsBudget numerics) {
  const lowering::ContractionPlan plan = select_contraction(product, gpu, numerics);
  const lowering::BlockTile& tile = *plan.block_tile;
  if (tile.arithmetic == lowering::BlockTile::Arithmetic::Fma)
    return tiling_by_fma(product, gpu);
  const auto chosen = std::ranges::find_if(
      plan.candidates, [](const lowering::PlanCandidate& each) { return each.declined.empty(); });
  return {count_blocks(product, tile.m, tile.n), chosen->estimate.value()};
}

}  // namespace

std::optional<ProductSplit> split_product(const Definition& sum, const std::vector<Buffer>& buffers,
                                          const Gpu& gpu, NumericsBudget numerics) {
  if (!is_divisible(sum) || sum.results.front().dtype != DType::F32)
    return std::nullopt;
  const std::optional<MatrixProduct> product = match_matrix_product(sum, buffers);
  if (!product)
    return std::nullopt;
  const std::optional<int64_t> k = size_of(product->k).constant(), results = size_of(sum.axes).constant();
  if (!k || !results || *k == 0 || *results == 0)
    return std::nullopt;
  const Tiling whole = tiling_of(*product, gpu, numerics);
  ProductSplit best{.axis = 0,
                    .parts = 1,
                    .nanoseconds_whole = whole.nanoseconds,
                    .nanoseconds_split = whole.nanoseconds,
                    .blocks_whole = whole.blocks,
                    .blocks_split = whole.blocks};
  for (size_t i = 0; i < sum.reduced.size(); ++i)
    for (int64_t parts = 2; parts <= std::min(kMostParts, *k / kLeastProducts); ++parts) {
      if (*sum.reduced[i].size.constant() % parts != 0)
        continue;
      MatrixProduct in_parts = *product;
      in_parts.batch.push_back({"parts", parts});
      Axis& divided = *std::ranges::find(in_parts.k, sum.reduced[i].variable, &Axis::variable);
      divided.size = *divided.size.constant() / parts;
      const Tiling tiling = tiling_of(in_parts, gpu, numerics);
      const double bytes = static_cast<double>(2 * parts * *results * info(DType::F32).bytes),
                   nanoseconds = tiling.nanoseconds + kLaunchNanoseconds +
                                 bytes / (gpu.bytes_per_nanosecond * kCacheRate);
      if (nanoseconds < kMuchLess * best.nanoseconds_split)
        best = {i, parts, whole.nanoseconds, nanoseconds, whole.blocks, tiling.blocks};
    }
  return best.nanoseconds_split > kMostOfWhole * whole.nanoseconds ? std::nullopt : std::optional(best);
}

}  // namespace tenon::schedule::cuda
