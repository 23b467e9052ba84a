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

// In this order, each at the lowest place where none that is alive with it lies.
MemoryPlan place(const std::vector<Lifetime>& buffers, const std::vector<size_t>& order) {
  MemoryPlan plan{.offsets = std::vector<int64_t>(buffers.size())};
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
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](int64_t at, size_t other) { return at < plan.offsets[other]; });
    placed.insert(at, each);
  }
  return plan;
}

}  // namespace

// The largest first; then, while there is something to gain, those first that ended highest.
MemoryPlan plan_memory(const std::vector<Lifetime>& buffers) {
  constexpr int kMostAttempts = 32;
  const int64_t least = most_alive(buffers), good_enough = least + least / 64;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  MemoryPlan plan = place(buffers, order), best = plan;
  for (int attempt = 1; attempt < kMostAttempts && best.bytes > good_enough; ++attempt) {
    const auto ends_highest = [&](size_t each) {
      return plan.offsets[each] + aligned(buffers[each].bytes) == plan.bytes;
    };
    const auto highest = std::find_if(order.begin(), order.end(), ends_highest);
    std::rotate(order.begin(), highest, highest + 1);
    plan = place(buffers, order);
    if (plan.bytes < best.bytes)
      best = plan;
  }
  best.lower_bound = least;
  return best;
}

}  // namespace tenon
