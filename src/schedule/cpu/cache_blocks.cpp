#include "schedule/cpu/cache_blocks.h"

#include <algorithm>

#include "loops/contraction.h"
#include "schedule/cpu/gemm_indices.h"

namespace tenon::schedule {

using loops::Axis;
using loops::Definition;
using loops::mentions;
using loops::Scalar;
using lowering::CacheBlocks;
using lowering::GemmTile;
using lowering::KBlocks;

namespace {

// Of a parallel loop: the least that lets threads steal work from a late one, and enough for load balance.
constexpr int64_t kLeastIterationsPerThread = 4, kIterationsPerThread = 8;
constexpr int64_t kUnknownRows = 128, kUnknownIterations = 32;  // assumed for dynamic sizes

// Into how many parts `rows` are split, each of which iterates over all panels, so that threads are balanced
// and what a part reads, of these bytes in all, stays in a cache of this size.
int64_t count_parts(const Dim& panels, const Dim& rows, int64_t bytes, int64_t cache,
                    const Context& context) {
  const int64_t most = std::max<int64_t>(rows.constant().value_or(1), 1), threads = context.threads,
                enough = kIterationsPerThread * threads,
                count = std::min(panels.constant().value_or(enough), enough);
  int64_t parts = std::clamp<int64_t>(bytes / cache, 1, most);
  while (parts < most && count * parts < enough &&
         (count * parts % threads != 0 || count * parts < kLeastIterationsPerThread * threads))
    ++parts;
  return parts;
}

struct ProductSizes {
  int64_t iterations, rows, panels;
  int64_t bytes_of_row, bytes_of_panel;  // per iteration
};
// Nothing where all rows and a panel stay in cache until the next panel needs the rows.
std::optional<KBlocks> choose_k_blocks(const ProductSizes& sizes, const Context& context) {
  constexpr int64_t kLeastIterations = 512, kMostIterations = 4096, kMostPanels = 8;
  const int64_t cache = context.target.caches.level2,
                bytes =
                    sizes.rows * sizes.bytes_of_row + 2 * sizes.bytes_of_panel;  // one is being prefetched
  if (sizes.iterations <= cache / bytes || sizes.iterations < 2 * kLeastIterations)
    return std::nullopt;
  const int64_t most = std::clamp(cache / 2 / bytes, kLeastIterations, kMostIterations),
                parts = (sizes.iterations + most - 1) / most;
  return KBlocks{.iterations = (sizes.iterations + parts - 1) / parts,
                 .panels = std::clamp<int64_t>(sizes.panels / (kLeastIterationsPerThread * context.threads),
                                               1, kMostPanels)};
}

// Of all that an expression of the sum reads; 0 where that is dynamic.
int64_t bytes_read(const Scalar& value, const Definition& sum) {
  std::map<std::string, Dim> first, last;
  for (const std::vector<Axis>* axes : {&sum.axes, &sum.reduced})
    for (const Axis& axis : *axes) {
      first.emplace(axis.variable, 0);
      last.emplace(axis.variable, axis.size - 1);
    }
  Dim bytes = 0;
  loops::for_each_load(value, [&](const Scalar& load) {
    Dim own = info(load.dtype()).bytes;
    for (const Scalar& index : load.operands())
      if (index.kind() == Scalar::Kind::Index)
        own = own * (index.index().substitute(last) - index.index().substitute(first) + 1);
    bytes = bytes + own;
  });
  return bytes.constant().value_or(0);
}

// Of all that these read; a shared buffer counts once.
int64_t bytes_read_once(const std::vector<Scalar>& values, const Definition& sum) {
  std::map<std::string, int64_t> bytes;  // of each buffer
  for (const Scalar& value : values)
    loops::for_each_load(value, [&](const Scalar& load) {
      bytes[load.name()] = std::max(bytes[load.name()], bytes_read(load, sum));
    });
  int64_t all = 0;
  for (const auto& [buffer, own] : bytes)
    all += own;
  return all;
}

class BlockChooser : GemmIndices {
 public:
  BlockChooser(const Definition& sum, const GemmTile& tile, const Packing& packing, bool may_part,
               const Context& context)
      : GemmIndices(sum, tile), packing_(packing), context_(context) {
    blocks_.rows_share_panel = tile_.packs || (packing.b && tile_.row && !goes_pixel_by_pixel());
    if (may_part)
      blocks_.parted_axis = find_parted_axis();
  }

  CacheBlocks run() {
    if (!lane_size().is_constant())
      return blocks_;
    blocks_.parts = count_parts();
    blocks_.k_blocks = find_k_blocks();
    blocks_.parts = count_parts();
    blocks_.prefetches_rows = packing_.b && tile_.row && packing_.b->rows_adjoin && !packing_.a &&
                              bytes_across() > context_.target.caches.level2 / 2;
    return blocks_;
  }

 private:
  // Depthwise weights that stay in L1 are better reloaded than the channels of a pixel visited separately.
  bool goes_pixel_by_pixel() const {
    return packing_.b && tile_.both_along && bytes_read(*along_, sum_) <= context_.target.caches.level1_data;
  }

  // The axis whose iterations are split: among threads, where panels are too few for them; and such that what
  // a part reads stays in cache while it iterates over panels. The first axis that shares a panel, or whose
  // size is static, else the rows. Where all are dynamic, the last may be the longest.
  std::optional<size_t> find_parted_axis() const {
    if (!lane_size().is_constant() || !tile_.row)
      return std::nullopt;
    const std::vector<size_t> within = blocks_.rows_share_panel ? axes_within_panel() : std::vector<size_t>();
    if (within.empty())
      return *tile_.row;
    const auto known =
        std::ranges::find_if(within, [&](size_t axis) { return sum_.axes[axis].size.is_constant(); });
    return known == within.end() ? within.back() : *known;
  }

  int64_t count_parts() const {
    if (!blocks_.parted_axis)
      return 1;
    Dim iterations = blocks_.k_blocks ? ceil_div(whole_panels(), blocks_.k_blocks->panels) : whole_panels();
    for (size_t i : outer_axes())
      if (!blocks_.rows_share_panel || mentions(*along_, sum_.axes[i].variable))
        iterations = iterations * sum_.axes[i].size;
    Dim parted = blocks_.parted_axis == tile_.row ? row_blocks() : sum_.axes[*blocks_.parted_axis].size;
    if (!parted.is_constant() && blocks_.parted_axis != tile_.row)
      parted = kUnknownIterations;
    return schedule::count_parts(iterations, parted, goes_pixel_by_pixel() ? 0 : bytes_across(),
                                 cache_of_part(), context_);
  }

  // Each part reads all panels again. Packed rows are contiguous: they are prefetched from the third level in
  // time, and need no second one.
  int64_t cache_of_part() const {
    const Caches& caches = context_.target.caches;
    return packing_.a ? std::max(caches.level3_share / 4, caches.level2 / 2) : caches.level2 / 2;
  }

  int64_t bytes_across() const {
    if (blocks_.k_blocks)
      return bytes_read(*across_, sum_) /
             *ceil_div(sum_.reduced.front().size, blocks_.k_blocks->iterations).constant();
    if (!tile_.tiles)
      return bytes_read(*across_, sum_);
    std::vector<Scalar> factors;
    for (const loops::Product& product : loops::match_products(sum_.values.front()))
      factors.push_back(product.lhs);
    return bytes_read_once(factors, sum_);
  }

  // Rows split into many parts stay in cache.
  std::optional<KBlocks> find_k_blocks() const {
    constexpr int64_t kMostParts = 2;
    if (!packing_.b || !tile_.row || tile_.tiles || packing_.a || sum_.reduced.size() != 1 ||
        !axes_within_panel().empty() || !fills_lanes() || sum_.combine != "+" ||
        row_size().constant().value_or(INT64_MAX) <= tile_.mr || *whole_panels().constant() == 1 ||
        blocks_.parts > kMostParts)
      return std::nullopt;
    return choose_k_blocks({.iterations = sum_.reduced.front().size.constant().value_or(0),
                            .rows = row_size().constant().value_or(kUnknownRows),
                            .panels = *whole_panels().constant(),
                            .bytes_of_row = info(across_->dtype()).bytes,
                            .bytes_of_panel = tile_.nr * info(along_->dtype()).bytes},
                           context_);
  }

  const Packing& packing_;
  const Context& context_;
  CacheBlocks blocks_;
};

}  // namespace

CacheBlocks choose_cache_blocks(const Definition& sum, const GemmTile& tile, const Packing& packing,
                                bool may_part, const Context& context) {
  return BlockChooser(sum, tile, packing, may_part, context).run();
}

}  // namespace tenon::schedule
