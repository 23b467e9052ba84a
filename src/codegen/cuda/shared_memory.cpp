#include "codegen/cuda/shared_memory.h"

#include <algorithm>
#include <bit>

#include "target/cluster.h"

namespace tenon::codegen::cuda {

using loops::Buffer;
using loops::Local;
using loops::Loop;
using loops::Mark;
using loops::ParallelRegion;
using loops::Space;
using loops::Statement;

namespace {

constexpr int64_t kSharedAlignment = 16;      // of each buffer, in bytes
constexpr int64_t kSwizzledAlignment = 1024;  // where any is swizzled
constexpr int64_t kThreadsOfTeams = 128;      // of a thread block that several teams share
constexpr int64_t kMostRegisterBytes = 16 << 10;

// Without those of thread loops, which are each thread's own.
void add_shared(const std::vector<Statement>& body, const Team& team, const PipelinedRegion& region,
                const RegionProducts& products, Dim& bytes) {
  const int64_t alignment = alignment_of(products.swizzled);
  for (const Statement& statement : body) {
    if (const auto* local = std::get_if<Local>(&statement);
        local != nullptr && is_shared(local->buffer, team) && !products.quads.contains(local->buffer.name))
      bytes = bytes + shared_bytes_of(local->buffer, team, alignment) * region.slots_of(local->buffer.name);
    const auto* loop = std::get_if<Loop>(&statement);
    if (const auto* inner = body_of(statement);
        inner != nullptr && (loop == nullptr || loop->mark != Mark::Thread))
      add_shared(*inner, team, region, products, bytes);
  }
}

}  // namespace

Team team_of(const ParallelRegion& region) {
  if (region.parallel.empty())
    return {};
  auto threads = static_cast<uint64_t>(std::max<int64_t>(region.parallel.front().threads, 1));
  if (is_persistent(region))  // teams of a warp would end at different times
    threads = std::max<uint64_t>(threads, kWarpThreads);
  if (const int64_t blocks = blocks_of_cluster(region.parallel.front().threads); blocks > 1)
    return {.threads = blocks * kThreadsOfClusterBlock, .blocks = blocks};
  if (threads > kWarpThreads || is_persistent(region))
    return {.threads = static_cast<int64_t>((threads + kWarpThreads - 1) / kWarpThreads * kWarpThreads)};
  const auto rounded = static_cast<int64_t>(std::bit_ceil(threads));
  return {.threads = rounded, .per_block = kThreadsOfTeams / rounded};
}

bool is_shared(const Buffer& buffer, const Team& team) {
  if (team.threads > 1)
    return buffer.space != Space::Private;
  return shared_bytes_of(buffer, team, kSharedAlignment).constant().value_or(kMostRegisterBytes + 1) >
         kMostRegisterBytes;
}

int64_t alignment_of(const std::set<std::string>& swizzled) {
  return swizzled.empty() ? kSharedAlignment : kSwizzledAlignment;
}

Dim shared_bytes_of(const Buffer& buffer, const Team& team, int64_t alignment) {
  const int64_t bytes = info(buffer.dtype).bytes;
  Dim elements = 1;
  for (const Dim& size : buffer.sizes)
    elements = elements * size;
  if (team.is_cluster()) {
    const int64_t vector = std::max<int64_t>(kVectorBytes / bytes, 1);
    elements = ceil_div(elements, team.threads * vector) * (vector * kThreadsOfClusterBlock);
  }
  return ceil_div(elements * bytes, alignment) * alignment;
}

Dim shared_bytes(const PipelinedRegion& region, const Team& team, const RegionProducts& products) {
  Dim bytes = 0;
  add_shared(region.region().body, team, region, products, bytes);
  return bytes;
}

RegionProducts products_of(const PipelinedRegion& region, const Team& team) {
  return find_region_products(region.region(), team.is_cluster() ? 1 : team.threads);
}

}  // namespace tenon::codegen::cuda
