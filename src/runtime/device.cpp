#include "runtime/device.h"

#include "base/error.h"

namespace tenon::runtime {

Memory allocate(int64_t bytes, int64_t threads) {
  const uint64_t most = memory_limit() / static_cast<uint64_t>(threads);
  if (static_cast<uint64_t>(bytes) > most)
    throw user_error("the model needs {} bytes of memory{}, but this machine has {}", bytes,
                     threads == 1 ? "" : fmt::format(" for each of {} threads", threads), memory_limit());
  const auto whole = static_cast<size_t>(padded_bytes(std::max<int64_t>(bytes, 1)) * threads);
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(kCacheLine, whole)));
  if (!memory)
    throw user_error("the model needs {} bytes of memory, which the system refused", whole);
  return memory;
}

std::byte* ReallocatedMemory::reserve(int64_t bytes) {
  if (bytes > bytes_ || !memory_) {
    const int64_t grown = std::max(bytes, std::exchange(bytes_, 0) / 2 * 3);
    memory_.reset();
    try {
      memory_ = device_.allocate(grown);
      bytes_ = grown;
    } catch (const UserError&) {
      if (grown == bytes)
        throw;
      memory_ = device_.allocate(bytes);
      bytes_ = bytes;
    }
  }
  return memory_.get();
}

}  // namespace tenon::runtime
