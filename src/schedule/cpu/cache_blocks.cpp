#include "schedule/cpu/cache_blocks.h"

#include <algorithm>

namespace tenon::schedule {

using loops::Axis;
using loops::Scalar;

namespace {

// Of a parallel loop: the least that lets threads steal work from a late one, and enough for load balance.
constexpr int64_t kLeastIterationsPerThread = 4, kIterationsPerThread = 8;

}  // namespace

int64_t count_parts(const Dim& panels, const Dim& rows, int64_t bytes, const Target& target) {
  const int64_t most = std::max<int64_t>(rows.constant().value_or(1), 1), cores = target.cores,
                enough = kIterationsPerThread * cores,
                count = std::min(panels.constant().value_or(enough), enough);
  int64_t parts = std::clamp<int64_t>(bytes / (target.caches.level2 / 2), 1, most);
  while (parts < most && count * parts < enough &&
         (count * parts % cores != 0 || count * parts < kLeastIterationsPerThread * cores))
    ++parts;
  return parts;
}

std::optional<LongSums> choose_long_sums(const ProductSizes& sizes, const Target& target) {
  constexpr int64_t kLeastTurns = 512, kMostIterations = 4096, kMostPanels = 8;
  const int64_t cache = target.caches.level2,
                bytes =
                    sizes.rows * sizes.bytes_of_row + 2 * sizes.bytes_of_panel;  // one is being prefetched
  if (sizes.iterations <= cache / bytes || sizes.iterations < 2 * kLeastTurns)
    return std::nullopt;
  const int64_t most = std::clamp(cache / 2 / bytes, kLeastTurns, kMostIterations),
                parts = (sizes.iterations + most - 1) / most;
  return LongSums{.iterations = (sizes.iterations + parts - 1) / parts,
                  .panels = std::clamp<int64_t>(sizes.panels / (kLeastIterationsPerThread * target.cores), 1,
                                                kMostPanels)};
}

int64_t bytes_read(const Scalar& value, const loops::Definition& sum) {
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

int64_t bytes_read_once(const std::vector<Scalar>& values, const loops::Definition& sum) {
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

}  // namespace tenon::schedule
