#include "runtime/plan_memory.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace tenon {
namespace {

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

int64_t most_alive(const std::vector<Lifetime>& buffers) {
  std::map<int64_t, int64_t> changes;  // at each step
  for (const Lifetime& buffer : buffers) {
    changes[buffer.first] += aligned(buffer.bytes);
    changes[buffer.last + 1] -= aligned(buffer.bytes);
  }
  int64_t alive = 0, most = 0;
  for (const auto& [step, change] : changes)
    most = std::max(most, alive += change);
  return most;
}

}  // namespace

// The largest first, each at the lowest place where none that is alive with it lies.
MemoryPlan plan_memory(const std::vector<Lifetime>& buffers) {
  MemoryPlan plan{
      .offsets = std::vector<int64_t>(buffers.size()), .bytes = 0, .lower_bound = most_alive(buffers)};
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed;  // by their offsets
  for (size_t each : order) {
    const Lifetime& own = buffers[each];
    int64_t offset = 0;
    for (size_t other : placed) {
      const Lifetime& there = buffers[other];
      if (there.last < own.first || own.last < there.first || own.bytes == 0)
        continue;
      if (plan.offsets[other] >= offset + aligned(own.bytes))
        break;
      offset = std::max(offset, plan.offsets[other] + aligned(there.bytes));
    }
    plan.offsets[each] = offset;
    plan.bytes = std::max(plan.bytes, offset + aligned(own.bytes));
    const auto place = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [&](int64_t at, size_t other) { return at < plan.offsets[other]; });
    placed.insert(place, each);
  }
  return plan;
}

}  // namespace tenon
