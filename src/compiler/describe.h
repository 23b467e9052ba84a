// describe.h — what a program needs besides time, in numbers.
#pragma once

#include "runtime/execution_plan.h"

namespace tenon::compiler {

struct Needs {
  int64_t kernels = 0, host_steps = 0;
  int64_t tuned_kernels = 0;  // those of the kernels for whose contractions something was chosen
  // The sizes of all buffers that steps read and write, each time that they do. Dynamic
  // sizes are left out, as they are of the arena.
  int64_t bytes_moved = 0;
  int64_t arena_bytes = 0, arena_lower_bound = 0;
};

// Of a value in memory; nothing where that is dynamic.
std::optional<int64_t> bytes_of(const Type& type, const Bindings& sizes);

// The sizes of all buffers that one step reads and writes, as above.
int64_t bytes_moved(const runtime::Program& program, const runtime::Step& step, const Bindings& sizes);

// For these sizes of the inputs.
Needs needs_of(const runtime::Program& program, const Bindings& sizes);

// What the symbols in the types of the inputs stand for in these inputs.
Bindings sizes_of(const runtime::Program& program, const Data& inputs);

}  // namespace tenon::compiler
