// describe.h — what a program needs besides time, in numbers.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/execution_plan.h"

namespace tenon::compiler {

// Where the nodes of a model run, if that is compiled for a GPU. Views run nowhere.
struct Placement {
  int64_t on_device = 0;                   // nodes that kernels compute
  std::map<std::string, int64_t> on_host;  // nodes by op, of which the reference evaluator runs each

  int64_t host_nodes() const;
  void add(const Placement& other);
};
// "5 nodes on the device, 3 on the host (nonzero 2, if 1)": the most frequent op first.
std::string describe(const Placement& placement);

// Nothing where kernels run on the processor. What nested graphs hold counts too.
std::optional<Placement> placement_of(const runtime::Program& program);

struct Needs {
  int64_t kernels = 0, host_steps = 0;
  int64_t tuned_kernels = 0;  // those of the kernels for whose contractions something was chosen
  // The sizes of all buffers that steps read and write, each time that they do. Dynamic
  // sizes are left out, as they are of the arena.
  int64_t bytes_moved = 0;
  int64_t arena_bytes = 0, arena_lower_bound = 0;
  std::optional<Placement> placement = {};
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
