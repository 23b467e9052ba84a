// step.h — what a program is made of: the values it works on, and the steps that compute them.
#pragma once

#include <algorithm>
#include <memory>

#include "ir/op_call.h"
#include "runtime/control_flow.h"

namespace tenon::runtime {

struct Program;

// Where the elements of a value are while a program runs.
enum class Home : uint8_t {
  Input,     // given by the caller
  Constant,  // made once, before the first run, by the program's prepare part
  Output,    // memory of the result
  Arena,     // planned
  Own,  // made when it is known how large it is, or what it holds: strings, sequences, sizes that depend on
        // elements
};

struct Slot {
  std::string name;
  Type type;
  Home home = Home::Arena;
  int64_t number = 0;                // among the inputs or outputs
  std::optional<size_t> alias = {};  // another slot in whose memory this one lies
};

// How a region of a kernel starts on a GPU.
struct LaunchConfiguration {
  int64_t threads = 0;               // of a thread block
  int64_t iterations_per_block = 1;  // where a few threads are enough for one
  int64_t blocks_per_iteration = 1;  // a cluster, where the threads of one block are not enough
  bool is_persistent = false;        // blocks stay for several iterations: no more of them than run at once
};

// What a backend generated for a kernel.
struct KernelCode {
  std::string bytes;
  size_t regions = 0;
  std::vector<LaunchConfiguration> shapes = {};  // of each region, on a GPU
};

// One region of a kernel: iterations that may run at once.
struct KernelRegion {
  Dim iterations, scratch;  // scratch: in bytes, for each thread
};

constexpr int64_t kElementsPerThread = 16384;  // less work is not worth waking a thread for

struct KernelStep {
  size_t code = 0;  // among those of the program
  std::vector<KernelRegion> regions;
  std::vector<size_t> reads, writes;
  std::vector<Dim> sizes;            // what the kernel's symbols stand for
  Dim work = 1;                      // about how many elements are computed
  bool flushes = false;              // subnormals are 0 to it
  bool is_tuned = false;             // its contraction is computed as was chosen, and not as estimates would
  std::vector<std::string> sources;  // nodes of the user's model that it computes; at least one
  std::vector<std::string> refusing = {};  // those of them that may be why it fails; at least one if it does

  std::string name() const { return fmt::format("kernel{}", code); }
};
// node "a", "b", "c" and 4 more
std::string describe_sources(const std::vector<std::string>& sources);

// An op without a kernel: its eval runs, or it is control flow over nested programs.
struct HostStep {
  std::string op;
  std::string described;                         // how an error speaks of the node
  std::vector<std::string> sources;              // nodes of the user's model; at least one
  std::shared_ptr<const OpCall> call = nullptr;  // null where a saved program is control flow
  std::optional<ControlFlow> control = {};       // where its nested graphs became programs
  std::vector<size_t> reads = {}, writes = {};
  std::map<std::string, std::shared_ptr<Program>, std::less<>> regions = {};  // what its nested graphs became
};

// Loops that do not need each other, so that they may run at once.
struct LoopsStep {
  std::vector<HostStep> loops;
  std::vector<size_t> reads, writes;  // of all of them
};

// The slot has the elements of another.
struct AliasStep {
  std::string op;                    // that reshapes
  std::string described;             // how an error speaks of the node
  std::vector<std::string> sources;  // nodes of the user's model; at least one
  size_t from, to;
  bool on_device = false;  // where its elements are then; matters where the slot's home is Own
};

// A value between the memory of a device and that of the host, each of which has a place for it.
struct CopyStep {
  enum class To : uint8_t {
    Device,
    Host,
    Caller,  // an output, which stays where it is for a caller who wants it on the device
  };

  size_t slot;
  To to;
};

using Step = std::variant<KernelStep, HostStep, LoopsStep, AliasStep, CopyStep>;

// Calls f(slot) for each slot that a step reads or writes.
template <class F>
void for_each_slot(const Step& step, F&& f) {
  if (const auto* alias = std::get_if<AliasStep>(&step)) {
    f(alias->from);
    f(alias->to);
    return;
  }
  if (const auto* copy = std::get_if<CopyStep>(&step))
    return f(copy->slot);
  const auto all = [&](const auto& each) {
    if constexpr (requires { each.reads; }) {
      std::for_each(each.reads.begin(), each.reads.end(), f);
      std::for_each(each.writes.begin(), each.writes.end(), f);
    }
  };
  std::visit(all, step);
}

}  // namespace tenon::runtime
