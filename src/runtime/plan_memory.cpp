#include "runtime/plan_memory.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tensor/tensor.h"

namespace tenon::runtime {
namespace {

// So that all sums below can be counted: no offset lies beyond the sum of all buffers.
void check_total(const std::vector<int64_t>& bytes) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() - 63;
  int64_t total = 0;
  for (int64_t each : bytes) {
    if (each > kMost || padded_bytes(each) > kMost - total)
      throw user_error("the model needs more than {} bytes of memory, but this machine has {}", kMost,
                       memory_limit());
    total += padded_bytes(each);
  }
}

std::vector<size_t> sorted_indices(size_t count, const auto& less) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

}  // namespace

MemoryPlanner::MemoryPlanner(std::vector<Lifetime> lifetimes)
    : lifetimes_(std::move(lifetimes)), alive_together_(lifetimes_.size()) {
  std::vector<size_t> alive;
  for (size_t each : sorted_indices(lifetimes_.size(), [&](size_t a, size_t b) {
         return lifetimes_[a].first < lifetimes_[b].first;
       })) {
    std::erase_if(alive, [&](size_t other) { return lifetimes_[other].last < lifetimes_[each].first; });
    for (size_t other : alive) {
      alive_together_[each].push_back(other);
      alive_together_[other].push_back(each);
    }
    alive.push_back(each);
    steps_ = std::max(steps_, lifetimes_[each].last + 1);
  }
}

int64_t MemoryPlanner::most_alive(const std::vector<int64_t>& bytes) const {
  std::vector<int64_t> changes(static_cast<size_t>(steps_) + 1);  // at each step
  for (size_t i = 0; i < lifetimes_.size(); ++i) {
    changes[static_cast<size_t>(lifetimes_[i].first)] += padded_bytes(bytes[i]);
    changes[static_cast<size_t>(lifetimes_[i].last) + 1] -= padded_bytes(bytes[i]);
  }
  int64_t alive = 0, most = 0;
  for (int64_t change : changes)
    most = std::max(most, alive += change);
  return most;
}

// In this order, each at the lowest place where none that is alive with it lies.
MemoryPlan MemoryPlanner::place(const std::vector<int64_t>& bytes, const std::vector<size_t>& order) const {
  MemoryPlan plan{.offsets = std::vector<int64_t>(bytes.size())};
  struct Range {
    int64_t begin, end;
  };
  std::vector<Range> taken;
  std::vector<bool> is_placed(bytes.size());
  for (size_t each : order) {
    if (bytes[each] == 0)
      continue;
    taken.clear();
    for (size_t other : alive_together_[each])
      if (is_placed[other])
        taken.push_back({plan.offsets[other], plan.offsets[other] + padded_bytes(bytes[other])});
    std::sort(taken.begin(), taken.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    int64_t offset = 0;
    for (const Range& range : taken) {
      if (range.begin >= offset + padded_bytes(bytes[each]))
        break;
      offset = std::max(offset, range.end);
    }
    plan.offsets[each] = offset;
    plan.bytes = std::max(plan.bytes, offset + padded_bytes(bytes[each]));
    is_placed[each] = true;
  }
  return plan;
}

// The largest first; then, while there is something to gain, those first that ended highest.
MemoryPlan MemoryPlanner::plan(const std::vector<int64_t>& bytes) const {
  constexpr int kMostAttempts = 32;
  check_total(bytes);
  const int64_t least = most_alive(bytes), good_enough = least + least / 64;
  std::vector<size_t> order =
      sorted_indices(bytes.size(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  MemoryPlan plan = place(bytes, order), best = plan;
  for (int attempt = 1; attempt < kMostAttempts && best.bytes > good_enough; ++attempt) {
    const auto ends_highest = [&](size_t each) {
      return plan.offsets[each] + padded_bytes(bytes[each]) == plan.bytes;
    };
    const auto highest = std::find_if(order.begin(), order.end(), ends_highest);
    std::rotate(order.begin(), highest, highest + 1);
    plan = place(bytes, order);
    if (plan.bytes < best.bytes)
      best = plan;
  }
  best.lower_bound = least;
  return best;
}

}  // namespace tenon::runtime
