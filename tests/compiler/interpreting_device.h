// interpreting_device.h — devices of tests, whose code is the text of kernels: they interpret it.
#pragma once

#include <algorithm>

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

inline runtime::KernelCode kernel_as_text(const loops::Kernel& kernel, const Target&,
                                          const std::optional<codegen::ObjectCache>&) {
  return {loops::print(kernel), loops::parallel_regions_of(kernel).size()};
}

}  // namespace tenon
