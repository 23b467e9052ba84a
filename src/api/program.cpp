// program.cpp — programs, run on memory of the caller's.
#include "api/program.h"

#include <cstring>

#include "api/sized_struct.h"
#include "api/status.h"
#include "runtime/cpu/thread_pool.h"
#include "tensor/byte_count.h"

using namespace tenon;
using namespace tenon::api;
using runtime::kMostRunThreads;

tenon_program::tenon_program(std::unique_ptr<runtime::Executor> compiled, tenon_device runs_on)
    : program(std::move(compiled)),
      device(runs_on),
      inputs(input_ports(program->program())),
      outputs(output_ports(program->program())) {
  for (Ports* ports : {&inputs, &outputs})
    for (Port& port : *ports)
      port.check_passable();
}

int tenon::api::count_threads(int64_t asked) {
  if (asked < 0 || asked > kMostRunThreads)
    throw user_error("a program runs with 1 to {} threads, not with {}", kMostRunThreads, asked);
  return std::min(asked == 0 ? this_machine().cores : static_cast<int>(asked), kMostRunThreads);
}

namespace {

runtime::RunOptions run_options(const tenon_run_options* caller, const tenon_program& program) {
  const tenon_run_options options = read_options(caller);
  if (options.stream != nullptr && program.device.type == TENON_DEVICE_CPU)
    throw unsupported("a stream is given, but the program runs on the CPU, which has none");
  return {.seed = options.seed, .threads = count_threads(options.threads), .stream = options.stream};
}

// --- runs ---

// Memory for the elements of tensors that are strided: contiguous, aligned for every dtype.
class Scratch {
 public:
  std::byte* allocate(int64_t bytes) {
    return blocks_.emplace_back(new std::byte[static_cast<size_t>(bytes)]).get();
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

// One run. What it needs is kept by the thread from call to call, so that nothing is allocated.
class Run {
 public:
  Run(const tenon_program& program, const Inputs& inputs, const Outputs& outputs,
      const runtime::RunOptions& options)
      : program_(program),
        inputs_(inputs),
        outputs_(outputs),
        options_(options),
        memory_(program.program->device().own_memory()) {
    check_counts();
    for (size_t i = 0; i < inputs.size(); ++i)
      program.inputs[i].check_input(inputs[i], program.device);
    for (size_t i = 0; i < outputs.size(); ++i)
      program.outputs[i].check_tensor(outputs[i], program.device);
    if (memory_ != nullptr)
      find_device_ports();
  }

  void run() {
    if (program_.program->has_fixed_sizes())
      run_fixed();
    else
      run_any();
  }

 private:
  void check_counts() const {
    if (inputs_.size() != program_.inputs.size())
      throw user_error("the program takes {} inputs, but {} were given", program_.inputs.size(),
                       inputs_.size());
    if (outputs_.size() != program_.outputs.size())
      throw user_error("the program has {} outputs, but {} were given", program_.outputs.size(),
                       outputs_.size());
  }

  void find_device_ports() {
    thread_local runtime::DevicePorts ports;
    ports.inputs.clear();
    ports.outputs.clear();
    for (size_t i = 0; i < inputs_.size(); ++i) {
      ports.inputs.push_back(!is_on_cpu(inputs_[i]));
      if (ports.inputs.back())
        program_.inputs[i].check_on_device(inputs_[i], sizes_of(inputs_[i]), *memory_);
    }
    for (size_t i = 0; i < outputs_.size(); ++i)
      ports.outputs.push_back(!is_on_cpu(outputs_[i]));
    options_.on_device = &ports;
  }

  static std::span<const int64_t> sizes_of(const tenon_tensor& input) {
    return {input.sizes, static_cast<size_t>(input.rank)};
  }

  // The elements of an input, contiguous.
  const void* source(size_t number) {
    const tenon_tensor& tensor = inputs_[number];
    const std::span<const int64_t> sizes = sizes_of(tensor);
    const Port& port = program_.inputs[number];
    const std::optional<StridedElements> strided = port.strided(tensor, sizes);
    if (!strided)
      return tensor.data;
    std::byte* const elements = scratch_.allocate(byte_count(port.dtype(), {sizes.begin(), sizes.end()}));
    strided->gather(static_cast<const std::byte*>(tensor.data), elements);
    return elements;
  }

  // Where the elements of an output are computed, contiguous.
  void* destination(size_t number, const Extents& extents) {
    const tenon_tensor& tensor = outputs_[number];
    const Port& port = program_.outputs[number];
    return port.strided(tensor, extents) ? scratch_.allocate(byte_count(port.dtype(), extents)) : tensor.data;
  }

  void deliver(size_t number, const Extents& extents, const void* elements) const {
    const tenon_tensor& tensor = outputs_[number];
    if (const std::optional<StridedElements> strided = program_.outputs[number].strided(tensor, extents))
      strided->scatter(static_cast<const std::byte*>(elements), static_cast<std::byte*>(tensor.data));
  }

  void run_fixed() {
    thread_local std::vector<const void*> sources;
    thread_local std::vector<void*> results;
    sources.clear();
    results.clear();
    const auto extents = [&](size_t i) -> const Extents& { return program_.outputs[i].sizes(); };
    prepare_outputs(extents);
    for (size_t i = 0; i < inputs_.size(); ++i)
      sources.push_back(source(i));
    for (size_t i = 0; i < outputs_.size(); ++i)
      results.push_back(destination(i, extents(i)));
    program_.program->run_into(sources, results, options_);
    for (size_t i = 0; i < outputs_.size(); ++i)
      deliver(i, extents(i), results[i]);
  }

  void run_any() {
    Data data;
    for (size_t i = 0; i < inputs_.size(); ++i)
      data.emplace_back(view(i));
    if (const std::optional<std::vector<Extents>> known = program_.program->output_extents(data)) {
      const auto extents = [&](size_t i) -> const Extents& { return (*known)[i]; };
      prepare_outputs(extents);
      std::vector<void*> results;
      for (size_t i = 0; i < outputs_.size(); ++i)
        results.push_back(destination(i, extents(i)));
      program_.program->run_into(data, results, options_);
      for (size_t i = 0; i < outputs_.size(); ++i)
        deliver(i, extents(i), results[i]);
      return;
    }
    const runtime::DevicePorts inputs_alone{
        .inputs = memory_ == nullptr ? std::vector<bool>() : options_.on_device->inputs, .outputs = {}};
    runtime::RunOptions to_host = options_;
    to_host.on_device = &inputs_alone;
    const Data results = program_.program->run(data, to_host);
    const auto extents = [&](size_t i) -> const Extents& { return results[i].tensor().extents(); };
    prepare_outputs(extents);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const std::span<const std::byte> bytes = results[i].tensor().bytes();
      if (!is_on_cpu(outputs_[i]))
        program_.program->upload(results[i].tensor(), static_cast<std::byte*>(outputs_[i].data));
      else if (program_.outputs[i].strided(outputs_[i], extents(i)))
        deliver(i, extents(i), bytes.data());
      else if (!bytes.empty())
        std::memcpy(outputs_[i].data, bytes.data(), bytes.size());
    }
  }

  // Sizes first, so that all are known where one output has too little room.
  template <class ExtentsOf>
  void prepare_outputs(const ExtentsOf& extents) const {
    for (size_t i = 0; i < outputs_.size(); ++i)
      program_.outputs[i].write_sizes(extents(i), outputs_[i]);
    for (size_t i = 0; i < outputs_.size(); ++i) {
      program_.outputs[i].check_output(outputs_[i], extents(i));
      if (is_on_cpu(outputs_[i]))
        continue;
      program_.outputs[i].check_on_device(outputs_[i], extents(i), *memory_);
      check_overlaps(i, extents);
    }
  }

  // Launches that do not need each other may run at once, so that these would be anything.
  template <class ExtentsOf>
  void check_overlaps(size_t number, const ExtentsOf& extents) const {
    const auto overlap = [&](const Port& port, const tenon_tensor& tensor, int64_t bytes) {
      const Port& output = program_.outputs[number];
      const auto own = reinterpret_cast<uintptr_t>(outputs_[number].data),
                 other = reinterpret_cast<uintptr_t>(tensor.data);
      const auto own_bytes = static_cast<uintptr_t>(output.count_bytes(extents(number)));
      if (!is_on_cpu(tensor) && bytes > 0 && own_bytes > 0 && own < other + static_cast<uintptr_t>(bytes) &&
          other < own + own_bytes)
        throw user_error("{} overlaps {}", output.title(), port.title());
    };
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::span<const int64_t> sizes = sizes_of(inputs_[i]);
      overlap(program_.inputs[i], inputs_[i], program_.inputs[i].count_bytes({sizes.begin(), sizes.end()}));
    }
    for (size_t i = 0; i < number; ++i)
      overlap(program_.outputs[i], outputs_[i], program_.outputs[i].count_bytes(extents(i)));
  }

  Tensor view(size_t number) {
    const tenon_tensor& tensor = inputs_[number];
    const Extents extents(tensor.sizes, tensor.sizes + tensor.rank);
    const DType dtype = program_.inputs[number].dtype();
    const auto bytes = static_cast<size_t>(byte_count(dtype, extents));
    // Nobody owns it: the caller keeps it as long as the run lasts, or this does.
    return {dtype, extents, nullptr, {static_cast<const std::byte*>(source(number)), bytes}};
  }

  const tenon_program& program_;
  const Inputs& inputs_;
  const Outputs& outputs_;
  runtime::RunOptions options_;
  const runtime::DeviceMemory* memory_;  // of the program's device, where it has its own
  Scratch scratch_;
};

}  // namespace

void tenon_free_program(tenon_program* program) { delete program; }

size_t tenon_program_count_inputs(const tenon_program* program) {
  return found_in<size_t>(program, "program", [](const tenon_program& each) { return each.inputs.size(); });
}

size_t tenon_program_count_outputs(const tenon_program* program) {
  return found_in<size_t>(program, "program", [](const tenon_program& each) { return each.outputs.size(); });
}

const tenon_port* tenon_program_input(const tenon_program* program, size_t number) {
  return found_in<const tenon_port*>(
      program, "program", [&](const tenon_program& each) { return describe(each.inputs, number); });
}

const tenon_port* tenon_program_output(const tenon_program* program, size_t number) {
  return found_in<const tenon_port*>(
      program, "program", [&](const tenon_program& each) { return describe(each.outputs, number); });
}

tenon_status tenon_run(const tenon_program* program, const tenon_tensor* inputs, size_t input_count,
                       tenon_tensor* outputs, size_t output_count, const tenon_run_options* options) {
  return guard([&] {
    if (input_count > 0)
      given(inputs, "inputs");
    if (output_count > 0)
      given(outputs, "outputs");
    Run(given(program, "program"), Inputs(inputs, input_count, "input"),
        Outputs(outputs, output_count, "output"), run_options(options, *program))
        .run();
  });
}

tenon_status tenon_synchronize(const tenon_program* program) {
  return guard([&] { given(program, "program").program->synchronize(); });
}
