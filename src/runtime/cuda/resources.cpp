#include "runtime/cuda/resources.h"

#include <limits>

#include "base/units.h"

namespace tenon::runtime::cuda {

Stream make_stream(const std::shared_ptr<const Context>& context) {
  CUstream stream = nullptr;
  context->check(driver().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "make a stream");
  return {context, stream};
}

namespace {

Event make_event(const std::shared_ptr<const Context>& context, unsigned flags) {
  CUevent event = nullptr;
  context->check(driver().cuEventCreate(&event, flags), "make an event");
  return {context, event};
}

}  // namespace

Event make_event(const std::shared_ptr<const Context>& context) {
  return make_event(context, CU_EVENT_DISABLE_TIMING);
}

Event make_timing_event(const std::shared_ptr<const Context>& context) { return make_event(context, 0); }

PinnedMemory allocate_pinned(const std::shared_ptr<const Context>& context, int64_t bytes) {
  void* memory = nullptr;
  context->check(driver().cuMemHostAlloc(&memory, static_cast<size_t>(bytes),
                                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                 fmt::format("pin {} bytes of memory of the host", bytes));
  return {context, memory};
}

MemoryPool make_pool(const std::shared_ptr<const Context>& context) {
  int is_supported = 0;
  context->check(driver().cuDeviceGetAttribute(&is_supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED,
                                               context->device()),
                 "tell whether it has pools of memory");
  if (is_supported == 0)
    return {};
  const CUmemPoolProps properties{.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .handleTypes = 0,
                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, context->device()},
                                  .win32SecurityAttributes = nullptr,
                                  .others = {}};
  CUmemoryPool handle = nullptr;
  context->check(driver().cuMemPoolCreate(&handle, &properties), "make a pool of memory");
  MemoryPool pool(context, handle);
  uint64_t kept = std::numeric_limits<uint64_t>::max();
  context->check(driver().cuMemPoolSetAttribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept),
                 "keep the memory of a pool");
  return pool;
}

void refuse_memory(const Context& context, int64_t bytes) {
  size_t free = 0, total = 0;
  context.check(driver().cuMemGetInfo(&free, &total), "tell how much memory is free");
  throw user_error("the model needs {} of memory on {}, which has {} free of {}",
                   format_bytes(static_cast<double>(bytes)), context.name(),
                   format_bytes(static_cast<double>(free)), format_bytes(static_cast<double>(total)));
}

}  // namespace tenon::runtime::cuda
