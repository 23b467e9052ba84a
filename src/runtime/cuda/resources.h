// resources.h — what is had from a device and given back: streams, events, modules, graphs, pinned memory,
// pools of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/cuda/context.h"

namespace tenon::runtime::cuda {

// A handle that is freed in its context, unless that is lost.
template <class Handle, auto Free>
class Owned {
 public:
  Owned() = default;
  Owned(std::shared_ptr<const Context> context, Handle handle)
      : context_(std::move(context)), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : context_(std::move(other.context_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr)
      context_->free([&](const Driver& driver) { (driver.*Free)(handle_); });
  }

  Handle get() const { return handle_; }

 private:
  std::shared_ptr<const Context> context_;
  Handle handle_ = nullptr;
};

using Stream = Owned<CUstream, &Driver::cuStreamDestroy>;
using Event = Owned<CUevent, &Driver::cuEventDestroy>;
using Module = Owned<CUmodule, &Driver::cuModuleUnload>;
using Graph = Owned<CUgraph, &Driver::cuGraphDestroy>;
using ExecutableGraph = Owned<CUgraphExec, &Driver::cuGraphExecDestroy>;
using PinnedMemory = Owned<void*, &Driver::cuMemFreeHost>;
using MemoryPool = Owned<CUmemoryPool, &Driver::cuMemPoolDestroy>;

// These are for when the context is current.

// One that does not wait for the default stream, nor it for this.
Stream make_stream(const std::shared_ptr<const Context>& context);
// To wait for, or one that two points in time are measured by.
Event make_event(const std::shared_ptr<const Context>& context);
Event make_timing_event(const std::shared_ptr<const Context>& context);
// Memory of the host that the device copies from, and that its kernels can reach.
PinnedMemory allocate_pinned(const std::shared_ptr<const Context>& context, int64_t bytes);
// Of memory of the device, which it keeps when that is freed. Empty where the device has no pools.
MemoryPool make_pool(const std::shared_ptr<const Context>& context);

// A user_error: the device does not have so many bytes.
[[noreturn]] void refuse_memory(const Context& context, int64_t bytes);

}  // namespace tenon::runtime::cuda
