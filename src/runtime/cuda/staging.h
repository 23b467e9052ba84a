// staging.h — uploads through pinned memory, so that they neither wait for the device nor need what they copy
// afterwards.
#pragma once

#include <array>

#include "runtime/cuda/resources.h"

namespace tenon::runtime::cuda {

// Two halves: while the device copies from one, the host fills the other.
class Staging {
 public:
  static constexpr int64_t kHalfBytes = 4 << 20;

  explicit Staging(std::shared_ptr<const Context> context) : context_(std::move(context)) {}

  // Copies in `stream`. The context is current.
  void upload(CUdeviceptr to, const std::byte* from, int64_t bytes, CUstream stream);
  // All copies have ended, so that what they held is free.
  void forget();

 private:
  struct Half {
    PinnedMemory memory;
    Event copied;
    int64_t used = 0;
    bool is_being_copied = false;
  };

  void make_room(CUstream stream);

  std::shared_ptr<const Context> context_;
  std::array<Half, 2> halves_;
  size_t filled_ = 0;  // the half that is
};

}  // namespace tenon::runtime::cuda
