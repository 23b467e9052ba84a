// device_memory.h — tensors of callers in the memory of a device.
#pragma once

#include "api/c_interface.h"
#include "api/program.h"

namespace tenon {

// Memory of the device that a program runs on.
class DeviceFloats {
 public:
  DeviceFloats(const ProgramHandle& program, const std::vector<float>& elements, std::vector<int64_t> sizes)
      : program_(program->program.get()),
        count_(elements.size()),
        sizes_(std::move(sizes)),
        memory_(device().allocate(bytes())) {
    const auto* from = reinterpret_cast<const std::byte*>(elements.data());
    device().upload(memory_.get(), from, bytes(), *workspace_);
    device().wait(*workspace_);
  }

  // `offset` is counted in bytes.
  tenon_tensor tensor(tenon_device device, size_t offset = 0) {
    return {.struct_size = sizeof(tenon_tensor),
            .data = memory_.get() + offset,
            .bytes = static_cast<size_t>(bytes()) - offset,
            .dtype = TENON_F32,
            .rank = static_cast<int32_t>(sizes_.size()),
            .sizes = sizes_.data(),
            .strides = nullptr,
            .device = device};
  }

  std::vector<float> elements() const {
    std::vector<float> found(count_);
    device().download(reinterpret_cast<std::byte*>(found.data()), memory_.get(), bytes(), *workspace_);
    return found;
  }

 private:
  runtime::DeviceMemory& device() const { return *program_->device().own_memory(); }
  int64_t bytes() const { return static_cast<int64_t>(count_ * sizeof(float)); }

  const runtime::Executor* program_;
  size_t count_;
  std::vector<int64_t> sizes_;
  std::unique_ptr<runtime::Workspace> workspace_ = program_->device().make_workspace();
  std::shared_ptr<std::byte[]> memory_;
};

inline tenon_status run_in(void* stream, const ProgramHandle& program, std::vector<tenon_tensor> inputs,
                           std::vector<tenon_tensor> outputs) {
  const tenon_run_options options{.struct_size = sizeof options, .threads = 1, .seed = 0, .stream = stream};
  return tenon_run(program.get(), inputs.data(), inputs.size(), outputs.data(), outputs.size(), &options);
}

}  // namespace tenon
