#include "runtime/cuda/resources.h"

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

}  // namespace tenon::runtime::cuda
