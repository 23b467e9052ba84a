// memory_use.h — what lies in a program's arena while it runs.
#pragma once

#include "runtime/program.h"

namespace tenon {

// A value in the arena, for these sizes of the inputs.
struct StoredTensor {
  std::string name, type;
  int64_t bytes, offset;
  int64_t from, to;  // steps: the one that makes it, and the last that needs it
};

struct MemoryUse {
  int64_t lower_bound = 0, arena = 0;
  std::vector<int64_t> live = {};  // bytes in use at each step
  int64_t kernel_constants = 0;    // bytes of the constants that kernels read, each once
  std::vector<StoredTensor> tensors = {};
};

MemoryUse memory_use_of(const runtime::Program& program, const Bindings& sizes);

}  // namespace tenon
