// virtual_memory.h — memory of a device that grows in place: a range of addresses as large as all its memory,
// into which memory is mapped once it is needed. What names addresses in it, as CUDA graphs do, stays valid.
#pragma once

#include "runtime/cuda/context.h"
#include "runtime/device.h"

namespace tenon::runtime::cuda {

bool has_virtual_memory(const Context& context);

class VirtualMemory : public GrowingMemory {
 public:
  explicit VirtualMemory(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  // Nothing may use the memory any more.
  ~VirtualMemory() override;
  VirtualMemory(const VirtualMemory&) = delete;
  VirtualMemory& operator=(const VirtualMemory&) = delete;

  std::byte* reserve(int64_t bytes) override;

 private:
  void reserve_addresses();
  void map(int64_t bytes);
  int64_t rounded(int64_t bytes) const { return (bytes + granularity_ - 1) / granularity_ * granularity_; }

  std::shared_ptr<const Context> context_;
  int64_t granularity_ = 1;  // of what is mapped
  CUdeviceptr begin_ = 0;
  int64_t range_ = 0, mapped_ = 0;  // in bytes
};

}  // namespace tenon::runtime::cuda
