#include "schedule/cuda/select_contraction.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "schedule/cuda/copied_factor.h"
#include "schedule/cuda/gemv.h"
#include "schedule/cuda/staged_factor.h"
#include "schedule/cuda/tensor_contraction.h"
#include "schedule/cuda/tensor_tiles.h"
#include "target/warpgroups.h"

namespace tenon::schedule::cuda {

using loops::Buffer;
using loops::Scalar;
using lowering::Algorithm;
using lowering::BlockTile;
using lowering::ContractionPlan;
using lowering::Decider;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::PlanCandidate;

namespace {

using Arithmetic = BlockTile::Arithmetic;

constexpr double kSizeOfUnknown = 512;    // that tiles are chosen for
constexpr int64_t kReservedBytes = 1024;  // of the shared memory of each thread block
constexpr int64_t kPadding = 8;           // elements behind each row there
constexpr double kShareOfFma = 0.7;       // of the peak, that the largest tiles reach
constexpr double kShareOfTensor = 0.7, kShareOfTensorFrom90 = 0.4;  // with mma.sync, which Hopper starves
constexpr double kShareOfWarpgroups = 0.85, kShareOfWarpgroupsInParts = 0.5;
// Bytes that come from the second-level cache in a cycle: to one multiprocessor, and to each if all of them
// load.
constexpr double kBytesPerCycle = 64, kBytesPerCycleOfAll = 34;
constexpr double kLatency = 600;  // cycles until what is asked of memory comes
constexpr double kProductsOfParts = 6;
// Instructions of a multiprocessor in a cycle, for each thread one; those to load or copy a vector of a
// factor that is no box, and to store an element, or its parts.
constexpr double kInstructionsPerCycle = 128, kToLoad = 10, kToStore = 1, kToStoreInParts = 14;
constexpr int64_t kShortStep = 32, kLongStep = 64, kLeastStages = 3, kMostStages = 8;

struct RatedTile {
  int64_t m, n, warp_m, warp_n;
  double rate;  // against that of the first
};
constexpr std::array<RatedTile, 8> kTensorTiles = {{
    {128, 128, 64, 32, 1.0},
    {128, 64, 64, 32, 0.85},
    {64, 128, 32, 64, 0.85},
    {64, 64, 32, 32, 0.65},
    {32, 128, 32, 32, 0.5},
    {64, 32, 32, 16, 0.45},
    {32, 64, 16, 32, 0.45},
    {32, 32, 16, 16, 0.3},
}};
constexpr std::array<RatedTile, 6> kWarpgroupTiles = {{
    {128, 256, 16, 256, 1.0},
    {128, 128, 16, 128, 1.0},
    {64, 256, 16, 256, 0.95},
    {128, 64, 16, 64, 0.9},
    {64, 128, 16, 128, 0.95},
    {64, 64, 16, 64, 0.8},
}};
// Twice as many sums, three parts of each factor, and what is split on its way: of more, threads have too few
// registers.
constexpr int64_t kMostOfTileInParts = 128 * 64, kMostOfWarpInParts = 32;
constexpr int64_t kMostStaged = 64, kMostSumsStaged = 64;  // of each thread of a warpgroup

double count(const Dim& size) {
  const std::optional<int64_t> known = size.constant();
  return known ? static_cast<double>(*known) : kSizeOfUnknown;
}

std::string_view name_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::Fma:
      return "by FMA";
    case Arithmetic::TensorCores:
      return "on tensor cores";
    case Arithmetic::Bf16x6:
      return "as bf16x6 on tensor cores";
  }
  return "";
}

class Selector {
 public:
  Selector(const MatrixProduct& product, const Gpu& gpu, NumericsBudget numerics)
      : product_(product), gpu_(gpu), numerics_(numerics) {}

  ContractionPlan run() {
    plan_.algorithm = Algorithm::Gemm;
    const bool has_16_bits = tensor_dtype(product_).has_value();
    const bool has_tensor_cores = tensor_multiply_adds_per_cycle(gpu_) > 0;
    std::vector<BlockTile> candidates;
    if (has_16_bits && has_tensor_cores)
      add_tensor_tiles(candidates, Arithmetic::TensorCores);
    else
      candidates.push_back(fma_tile());
    if (!has_16_bits)
      consider_parts(candidates, has_tensor_cores);
    plan_.block_tile = *std::ranges::min_element(candidates, {}, [&](auto& each) { return time_of(each); });
    for (const BlockTile& each : candidates)
      plan_.candidates.push_back({.name = describe(each),
                                  .estimate = time_of(each),
                                  .unit = "ns",
                                  .declined = each == *plan_.block_tile ? "" : "slower by the estimate"});
    std::ranges::rotate(plan_.candidates, plan_.candidates.begin() + declined_);
    if (candidates.size() == 1 && plan_.decider == Decider::CostModel)
      plan_.decider = Decider::Target;
    return std::move(plan_);
  }

 private:
  // f32 on tensor cores.
  void consider_parts(std::vector<BlockTile>& candidates, bool has_tensor_cores) {
    const auto decline = [&](std::string reason, Decider decider) {
      plan_.candidates.push_back({.name = "tiles as bf16x6 on tensor cores", .declined = std::move(reason)});
      plan_.decider = decider;
      ++declined_;
    };
    if (numerics_ == NumericsBudget::Strict)
      decline("it rounds differently: numerics are strict", Decider::Numerics);
    else if (!has_tensor_cores)
      decline("the target has no tensor cores for bf16", Decider::Target);
    else
      add_tensor_tiles(candidates, Arithmetic::Bf16x6);
  }

  // The best by warps, and by warpgroups.
  void add_tensor_tiles(std::vector<BlockTile>& candidates, Arithmetic arithmetic) {
    candidates.push_back(best_tensor_tile(arithmetic));
    std::vector<BlockTile> tiles;
    if (has_warpgroup_products(gpu_))
      for (const RatedTile& rated : kWarpgroupTiles)
        if (std::optional<BlockTile> tile = warpgroup_tile(rated, arithmetic))
          tiles.push_back(*tile);
    if (!tiles.empty())
      candidates.push_back(fastest(tiles));
  }

  const BlockTile& fastest(const std::vector<BlockTile>& tiles) const {
    return *std::ranges::min_element(tiles, {}, [&](const BlockTile& tile) { return time_of(tile); });
  }

  BlockTile fma_tile() const {
    const ContractionTile tile = choose_tile(product_, gpu_);
    return {.arithmetic = Arithmetic::Fma,
            .m = tile.m,
            .n = tile.n,
            .k = tile.k,
            .part_m = tile.thread_m,
            .part_n = tile.thread_n};
  }

  BlockTile best_tensor_tile(Arithmetic arithmetic) const {
    std::vector<BlockTile> tiles;
    for (const RatedTile& rated : kTensorTiles)
      if (arithmetic != Arithmetic::Bf16x6 || rated.m * rated.n <= kMostOfTileInParts)
        tiles.push_back(tensor_tile(rated, arithmetic));
    return fastest(tiles);
  }

  // Operands are copied as they are, or split into parts on their way.
  std::optional<BlockTile> warpgroup_tile(const RatedTile& rated, Arithmetic arithmetic) const {
    BlockTile tile{.arithmetic = arithmetic,
                   .m = rated.m,
                   .n = rated.n,
                   .k = kLongStep,
                   .part_m = rated.warp_m,
                   .part_n = rated.warp_n,
                   .by_warpgroups = true};
    const int64_t threads = rated.m * 2;
    if (arithmetic == Arithmetic::Bf16x6 || factors_copied(tile) < 2)
      return rated.m * rated.n <= kMostSumsStaged * threads &&
                     (rated.m + rated.n) * kLongStep <= kMostStaged * threads
                 ? std::optional(tile)
                 : std::nullopt;
    tile.stages = stages_of(2 * (rated.m + rated.n) * kLongStep);
    return tile;
  }

  // So many that two blocks run at once, if they are enough to hide latency; of so many bytes.
  int64_t stages_of(int64_t bytes) const {
    const int64_t of_two = gpu_.shared_bytes_per_multiprocessor / 2 - kReservedBytes, most = of_two / bytes;
    return std::min(kMostStages, most < kLeastStages ? gpu_.shared_bytes_per_block / bytes : most);
  }

  BlockTile tensor_tile(const RatedTile& rated, Arithmetic arithmetic) const {
    BlockTile tile{.arithmetic = arithmetic,
                   .m = rated.m,
                   .n = rated.n,
                   .k = kShortStep,
                   .part_m = rated.warp_m,
                   .part_n = rated.warp_n};
    if (arithmetic == Arithmetic::Bf16x6) {
      tile.part_m = std::min(tile.part_m, kMostOfWarpInParts);
      tile.part_n = std::min(tile.part_n, kMostOfWarpInParts);
      return tile;
    }
    const int copied = factors_copied(tile);
    if (copied == 0)
      return tile;
    tile.stages = kLeastStages;
    if (copied < 2)
      return tile;
    BlockTile of_long_steps = tile;
    of_long_steps.k = kLongStep;
    const auto bytes_of = [](const BlockTile& each) { return 2 * (each.m + each.n) * (each.k + kPadding); };
    if (factors_copied(of_long_steps) == 2 &&
        kLeastStages * bytes_of(of_long_steps) <= gpu_.shared_bytes_per_block)
      tile = of_long_steps;
    tile.stages = std::max(stages_of(bytes_of(tile)), kLeastStages);
    return tile;
  }

  int factors_copied(const BlockTile& tile) const {
    return (is_copied(product_.first, tile.m, tile) ? 1 : 0) +
           (is_copied(product_.second, tile.n, tile) ? 1 : 0);
  }

  bool is_box(const TiledFactor& factor, int64_t rows, const BlockTile& tile) const {
    return can_copy(without_cast(factor), product_.k, rows, tile.k);
  }
  bool is_copied(const TiledFactor& factor, int64_t rows, const BlockTile& tile) const {
    return is_box(factor, rows, tile) ||
           can_gather(without_cast(factor), rows, tile.k,
                      tile.m / tile.part_m * (tile.n / tile.part_n) * kWarpThreads);
  }

  // Where blocks run one after the other on each multiprocessor.
  double time_of(const BlockTile& tile) const {
    const auto in_tiles = [](const Dim& size, int64_t tile) {
      return std::ceil(count(size) / static_cast<double>(tile));
    };
    const Dim batch = size_of(product_.batch);
    const double blocks = (batch.is_constant() ? count(batch) : 1) * in_tiles(size_of(product_.m()), tile.m) *
                          in_tiles(size_of(product_.n()), tile.n);
    const double at_once = std::min<double>(blocks, gpu_.multiprocessors);
    const double bytes_per_cycle =
        std::min(kBytesPerCycle, kBytesPerCycleOfAll * gpu_.multiprocessors / std::max(at_once, 1.0));
    const double multiplying = static_cast<double>(tile.m * tile.n * tile.k) / rate_of(tile),
                 staging = staging_of_step(tile);
    const double step = std::max({tile.by_warpgroups ? std::max(multiplying, staging) : multiplying + staging,
                                  bytes_of_step(tile) / bytes_per_cycle,
                                  kLatency / static_cast<double>(std::max<int64_t>(tile.stages - 1, 1))});
    return std::ceil(blocks / gpu_.multiprocessors) * in_tiles(size_of(product_.k), tile.k) * step /
           gpu_.cycles_per_nanosecond;
  }

  // Cycles in which threads bring the factors to shared memory that are no boxes.
  double staging_of_step(const BlockTile& tile) const {
    if (tile.arithmetic == Arithmetic::Fma)
      return 0;  // in the rates that were measured
    const bool is_in_parts = tile.arithmetic == Arithmetic::Bf16x6;
    double instructions = 0;
    for (const auto& [factor, rows] : {std::pair{&product_.first, tile.m}, {&product_.second, tile.n}}) {
      if (tile.stages > 1 && is_box(*factor, rows, tile))
        continue;
      const auto elements = static_cast<double>(rows * tile.k);
      instructions += elements / static_cast<double>(factor->vector) * kToLoad;
      if (tile.stages == 1 || !is_copied(*factor, rows, tile))
        instructions += elements * (is_in_parts ? kToStoreInParts : kToStore);
    }
    return instructions / kInstructionsPerCycle;
  }

  double bytes_of_step(const BlockTile& tile) const {
    const auto bytes_of = [](const TiledFactor& factor) {
      const Scalar& value = factor.value;
      return info((value.kind() == Scalar::Kind::Apply ? value.operands().front() : value).dtype()).bytes;
    };
    return static_cast<double>((tile.m * bytes_of(product_.first) + tile.n * bytes_of(product_.second)) *
                               tile.k);
  }

  // Multiply-adds of a cycle.
  double rate_of(const BlockTile& tile) const {
    if (tile.arithmetic == Arithmetic::Fma)
      return static_cast<double>(multiply_adds_per_cycle(gpu_)) * kShareOfFma *
             rate_of_tile({tile.m, tile.n, tile.k, tile.part_m, tile.part_n});
    const auto is_of_tile = [&](const RatedTile& each) { return each.m == tile.m && each.n == tile.n; };
    const bool is_in_parts = tile.arithmetic == Arithmetic::Bf16x6;
    const RatedTile& rated = tile.by_warpgroups ? *std::ranges::find_if(kWarpgroupTiles, is_of_tile)
                                                : *std::ranges::find_if(kTensorTiles, is_of_tile);
    const double share = tile.by_warpgroups ? is_in_parts ? kShareOfWarpgroupsInParts : kShareOfWarpgroups
                         : gpu_.architecture >= 90 ? kShareOfTensorFrom90
                                                   : kShareOfTensor;
    const double rate = static_cast<double>(tensor_multiply_adds_per_cycle(gpu_)) * share * rated.rate;
    return is_in_parts ? rate / kProductsOfParts : rate;
  }

  const MatrixProduct& product_;
  const Gpu& gpu_;
  NumericsBudget numerics_;
  ContractionPlan plan_;
  std::ptrdiff_t declined_ = 0;
};

ContractionPlan gemv_plan() {
  return {
      .algorithm = Algorithm::Gemv,
      .decider = Decider::Shape,
      .candidates = {{.name = "gemv"},
                     {.name = "tiles", .declined = "there are too few rows to load weights more than once"}}};
}

}  // namespace

ContractionPlan select_contraction(const MatrixProduct& product, const Gpu& gpu, NumericsBudget numerics) {
  return Selector(product, gpu, numerics).run();
}

void select_contractions(KernelGraph& graph, const Gpu& gpu, NumericsBudget numerics) {
  for (KernelNode& node : graph.nodes) {
    if (!node.stage || !node.stage->definition.reduces())
      continue;
    std::vector<Buffer> buffers;
    for (const std::string& name : buffers_read(*node.stage))
      buffers.push_back(graph.buffers.at(name));
    if (is_gemv(node.stage->definition, buffers))
      node.stage->plan = std::make_shared<const ContractionPlan>(gemv_plan());
    else if (const auto product = match_matrix_product(node.stage->definition, buffers))
      node.stage->plan = std::make_shared<const ContractionPlan>(select_contraction(*product, gpu, numerics));
  }
}

std::string describe(const BlockTile& tile) {
  std::string text = fmt::format("tiles of {}x{}x{} {}", tile.m, tile.n, tile.k, name_of(tile.arithmetic));
  if (tile.by_warpgroups)
    text += " with wgmma";
  if (tile.stages > 1)
    text += fmt::format(", {} stages", tile.stages);
  return text;
}

}  // namespace tenon::schedule::cuda
