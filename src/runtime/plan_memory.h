// plan_memory.h — where buffers lie in one arena, so that those which are never alive together share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "target/target.h"

namespace tenon::runtime {

// In steps: alive from the one that makes it to the last that needs it.
struct Lifetime {
  int64_t first, last;
};

// What a buffer takes in the arena: whole cache lines.
constexpr int64_t padded_bytes(int64_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each buffer, in bytes; multiples of kCacheLine
  int64_t bytes = 0;             // of the arena
  int64_t lower_bound = 0;       // the most that is alive at one step: no plan for this order takes less
};

// Buffers whose sizes may be others in every run: who is alive with whom is found out once.
class MemoryPlanner {
 public:
  explicit MemoryPlanner(std::vector<Lifetime> lifetimes = {});

  // More bytes than can be counted are a user_error.
  MemoryPlan plan(const std::vector<int64_t>& bytes) const;

 private:
  int64_t most_alive(const std::vector<int64_t>& bytes) const;
  MemoryPlan place(const std::vector<int64_t>& bytes, const std::vector<size_t>& order) const;

  std::vector<Lifetime> lifetimes_;
  std::vector<std::vector<size_t>> alive_together_;  // with each buffer
  int64_t steps_ = 0;
};

}  // namespace tenon::runtime
