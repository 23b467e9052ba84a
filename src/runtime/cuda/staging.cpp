#include "runtime/cuda/staging.h"

#include <algorithm>
#include <cstring>

namespace tenon::runtime::cuda {

void Staging::make_room(CUstream stream) {
  if (Half& full = halves_[filled_]; full.used == kHalfBytes) {
    context_->check(driver().cuEventRecord(full.copied.get(), stream), "mark the end of an upload");
    full.is_being_copied = true;
    filled_ = 1 - filled_;
  }
  Half& half = halves_[filled_];
  if (half.memory.get() == nullptr) {
    half.memory = allocate_pinned(context_, kHalfBytes);
    half.copied = make_event(context_);
  }
  if (half.is_being_copied) {
    context_->check(driver().cuEventSynchronize(half.copied.get()), "upload");
    half.is_being_copied = false;
    half.used = 0;
  }
}

void Staging::upload(CUdeviceptr to, const std::byte* from, int64_t bytes, CUstream stream) {
  for (int64_t done = 0; done < bytes;) {
    make_room(stream);
    Half& half = halves_[filled_];
    std::byte* room = static_cast<std::byte*>(half.memory.get()) + half.used;
    const int64_t part = std::min(bytes - done, kHalfBytes - half.used);
    std::memcpy(room, from + done, static_cast<size_t>(part));
    context_->check(driver().cuMemcpyHtoDAsync(to + static_cast<CUdeviceptr>(done), room,
                                               static_cast<size_t>(part), stream),
                    "upload");
    half.used += part;
    done += part;
  }
}

void Staging::forget() {
  for (Half& half : halves_) {
    half.used = 0;
    half.is_being_copied = false;
  }
}

}  // namespace tenon::runtime::cuda
