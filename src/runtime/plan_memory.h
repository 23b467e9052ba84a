// plan_memory.h — where buffers lie in one arena, so that those which are never alive together share memory.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon {

// Alive from the step that makes it to the last that needs it.
struct Lifetime {
  int64_t bytes;
  int64_t first, last;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each buffer, in bytes; multiples of 64
  int64_t bytes = 0;             // of the arena
  int64_t lower_bound = 0;       // the most that is alive at one step: no plan for this order takes less
};

MemoryPlan plan_memory(const std::vector<Lifetime>& buffers);

}  // namespace tenon
