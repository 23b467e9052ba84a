// executor_state.h — what one run of a program has for itself.
#pragma once

#include "runtime/executor.h"
#include "runtime/memory_pool.h"

namespace tenon::runtime {

// The sizes of a tensor; a user_error where one is not known.
inline Extents extents_of(const Type& type, const Bindings& bindings) {
  Extents extents;
  for (const Dim& dim : type.as_tensor().shape.dims())
    extents.push_back(evaluate_size(dim, bindings));
  return extents;
}

// Memory of a device that grows with what it is asked for.
struct DeviceBlock {
  std::shared_ptr<std::byte[]> memory = nullptr;
  int64_t bytes = 0;

  std::byte* reserve(int64_t wanted, DeviceMemory& device) {
    if (wanted > bytes || !memory) {
      memory.reset();
      memory = device.allocate(wanted);
      bytes = wanted;
    }
    return memory.get();
  }
};

// Where the values of a run are on a device with memory of its own.
struct DeviceValues {
  std::unique_ptr<GrowingMemory> arena;
  std::byte* arena_address = nullptr;
  std::vector<DeviceBlock> inputs, outputs;       // of a caller whose memory is the host's
  std::vector<std::shared_ptr<std::byte[]>> own;  // by slot
  std::vector<std::byte*> pointers;               // by slot
};

// Steps that are launched as one, and what changes in them from run to run.
struct GraphSegment {
  struct Moving {
    size_t launch, buffer, slot;
  };

  size_t last;  // step
  std::unique_ptr<LaunchGraph> graph;
  std::vector<Moving> moving;  // buffers in memory of the caller's, or in what may be allocated anew
};

// Those of a program for one layout, by their first steps. They are made when it is used for the second time.
struct LayoutGraphs {
  std::shared_ptr<const Layout> layout;
  int64_t runs = 0;
  std::map<size_t, GraphSegment> segments = {};
};

struct Executor::State {
  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (device_memory != nullptr)
      device_memory->settle(*workspace);
  }

  bool is_input_on_device(size_t number) const {
    return options.on_device != nullptr && !options.on_device->inputs.empty() &&
           options.on_device->inputs[number];
  }
  bool is_output_on_device(size_t number) const {
    return options.on_device != nullptr && !options.on_device->outputs.empty() &&
           options.on_device->outputs[number];
  }
  // Of the caller's.
  std::byte* input(size_t number) const {
    return const_cast<std::byte*>(inputs == nullptr ? static_cast<const std::byte*>(input_memory[number])
                                                    : (*inputs)[number].tensor().bytes().data());
  }

  const Data* inputs = nullptr;
  std::span<const void* const> input_memory = {};  // in place of the inputs
  std::span<void* const> output_memory = {};       // where outputs go, if the caller says so
  RunOptions options = {};
  Bindings bindings = {};
  std::shared_ptr<const Layout> layout = nullptr;
  Memory arena = nullptr;
  int64_t arena_bytes = 0;
  std::unique_ptr<Workspace> workspace = nullptr;
  DeviceMemory* device_memory = nullptr;
  bool in_flight = false;        // its last run returned before it had ended
  const void* stream = nullptr;  // of that run
  bool is_borrowed = false;      // another run in the stream goes on with it
  std::vector<Datum> own = {};
  MemoryPool own_memory = {};
  std::vector<std::byte*> pointers = {};
  std::vector<std::byte*> buffers = {};  // of the kernel that runs
  std::vector<Tensor> outputs = {};
  DeviceValues device = {};
  std::vector<LayoutGraphs> graphs = {};
  std::vector<Tensor> copied_inputs = {};  // of a caller whose memory is the device's
  RandomGenerator random{};
  size_t step = 0;
};

}  // namespace tenon::runtime
