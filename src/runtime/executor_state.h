// executor_state.h — what one run of a program has for itself.
#pragma once

#include "runtime/executor.h"
#include "runtime/memory_pool.h"

namespace tenon::runtime {

struct Executor::State {
  const Data* inputs = nullptr;
  std::span<const void* const> input_memory = {};  // in place of the inputs
  std::span<void* const> output_memory = {};       // where outputs go, if the caller says so
  RunOptions options = {};
  Bindings bindings = {};
  std::shared_ptr<const Layout> layout = nullptr;
  Memory arena = nullptr;
  int64_t arena_bytes = 0;
  std::unique_ptr<Workspace> workspace = nullptr;
  std::vector<Datum> own = {};
  MemoryPool own_memory = {};
  std::vector<std::byte*> pointers = {};
  std::vector<std::byte*> buffers = {};  // of the kernel that runs
  std::vector<Tensor> outputs = {};
  RandomGenerator random = {};
  size_t step = 0;
};

}  // namespace tenon::runtime
