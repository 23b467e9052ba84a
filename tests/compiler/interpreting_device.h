// interpreting_device.h — devices of tests, whose code is the text of kernels: they interpret it.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "compiler/backend.h"
#include "loops/interpret.h"
#include "loops/parallel_regions.h"

namespace tenon {

class InterpretedKernel : public runtime::LoadedKernel {
 public:
  explicit InterpretedKernel(const std::string& text) : kernel_(loops::parse_checked_kernel(text)) {}

  bool launch(const runtime::KernelStep& step, const runtime::Launch& launch,
              std::span<std::byte* const> buffers, int, runtime::Workspace&) const override {
    std::map<std::string, int64_t> sizes;
    const std::vector<std::string> symbols = kernel_.size_symbols();
    for (size_t i = 0; i < symbols.size(); ++i)
      sizes.emplace(symbols[i], launch.sizes()[i]);
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < step.reads.size(); ++i)
      inputs.push_back(view(kernel_.inputs[i], buffers[i], sizes));
    const std::vector<Tensor> outputs = loops::interpret(kernel_, inputs, sizes);
    for (size_t i = 0; i < outputs.size(); ++i)
      std::ranges::copy(outputs[i].bytes(), buffers[step.reads.size() + i]);
    return true;
  }

 private:
  static Tensor view(const loops::Buffer& buffer, std::byte* memory,
                     const std::map<std::string, int64_t>& sizes) {
    Extents extents;
    for (const Dim& size : buffer.sizes)
      extents.push_back(size.evaluate(sizes).value());
    const auto bytes = static_cast<size_t>(element_count(extents) * info(buffer.dtype).bytes);
    return {buffer.dtype, extents, nullptr, {memory, bytes}};
  }

  loops::Kernel kernel_;
};

class InterpretingDevice : public runtime::Device {
 public:
  std::unique_ptr<runtime::LoadedKernel> load(const runtime::KernelCode& code) override {
    return std::make_unique<InterpretedKernel>(code.bytes);
  }
  std::unique_ptr<runtime::Workspace> make_workspace() const override {
    return std::make_unique<runtime::Workspace>();
  }
};

// The same with memory of its own: kernels may use that alone, and the host may not. What it holds is no
// number before it is written.
class SeparateDevice : public InterpretingDevice, private runtime::DeviceMemory {
 public:
  std::unique_ptr<runtime::LoadedKernel> load(const runtime::KernelCode& code) override {
    return std::make_unique<Kernel>(*this, code.bytes);
  }
  runtime::DeviceMemory* own_memory() override { return this; }

  int graphs = 0;  // that were made

 private:
  class Kernel : public runtime::LoadedKernel {
   public:
    Kernel(const SeparateDevice& device, const std::string& text) : device_(device), kernel_(text) {}

    bool launch(const runtime::KernelStep& step, const runtime::Launch& launch,
                std::span<std::byte* const> buffers, int threads,
                runtime::Workspace& workspace) const override {
      for (const std::byte* buffer : buffers)
        CHECK(device_.owns(buffer), "a kernel is given memory of the host");
      try {
        return kernel_.launch(step, launch, buffers, threads, workspace);
      } catch (const UserError&) {  // as elements are: it is known when the run ends
        device_.failed_ = workspace.step;
        return true;
      }
    }

   private:
    const SeparateDevice& device_;
    InterpretedKernel kernel_;
  };

  static constexpr int kUnwritten = 0xff;

  std::shared_ptr<std::byte[]> allocate(int64_t bytes) override {
    const auto count = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    std::shared_ptr<std::byte[]> memory(new std::byte[count], [this](std::byte* freed) {
      blocks_.erase(freed);
      delete[] freed;
    });
    std::memset(memory.get(), kUnwritten, count);
    blocks_.emplace(memory.get(), count);
    return memory;
  }
  void upload(std::byte* to, const std::byte* from, int64_t bytes, runtime::Workspace&) override {
    CHECK(owns(to) && !owns(from), "an upload is none");
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void download(std::byte* to, const std::byte* from, int64_t bytes, runtime::Workspace&) override {
    CHECK(!owns(to) && owns(from), "a download is none");
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, runtime::Workspace&) override {
    CHECK(owns(to) && owns(from), "a copy is not within the device");
    std::memmove(to, from, static_cast<size_t>(bytes));
  }
  void wait(runtime::Workspace&) override {}
  void start_clock(runtime::Workspace&) override {}
  double stop_clock(runtime::Workspace&) override { return 1; }
  std::optional<size_t> finish(runtime::Workspace&) override { return std::exchange(failed_, std::nullopt); }

  // One after the other.
  struct Graph : runtime::LaunchGraph {
    explicit Graph(std::vector<runtime::RepeatedLaunch> all) : launches(std::move(all)) {}

    void set_buffer(size_t launch, size_t buffer, std::byte* memory) override {
      launches[launch].buffers[buffer] = memory;
    }
    void launch(runtime::Workspace& workspace) override {
      for (const runtime::RepeatedLaunch& each : launches) {
        workspace.step = each.number;
        each.kernel->launch(*each.step, each.launch, each.buffers, 1, workspace);
      }
    }

    std::vector<runtime::RepeatedLaunch> launches;
  };
  std::unique_ptr<runtime::LaunchGraph> make_graph(const std::vector<runtime::RepeatedLaunch>& launches,
                                                   runtime::Workspace&) override {
    ++graphs;
    return std::make_unique<Graph>(launches);
  }

  bool owns(const std::byte* memory) const {
    const auto after = blocks_.upper_bound(memory);
    return after != blocks_.begin() && memory <= std::prev(after)->first + std::prev(after)->second;
  }

  std::map<const std::byte*, size_t> blocks_;
  mutable std::optional<size_t> failed_;
};

inline runtime::KernelCode kernel_as_text(const loops::Kernel& kernel, const Target&,
                                          const std::optional<codegen::ObjectCache>&) {
  return {loops::print(kernel), loops::parallel_regions_of(kernel).size()};
}

}  // namespace tenon
