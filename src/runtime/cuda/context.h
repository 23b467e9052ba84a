// context.h — the context of a device, in which all that Tenon has there is.
#pragma once

#include <atomic>
#include <memory>

#include "runtime/cuda/driver.h"

namespace tenon::runtime::cuda {

// The primary context of a device: all that use CUDA in this process share it, PyTorch too. After a
// DeviceError it is lost, and with it what was allocated and loaded in it.
class Context {
 public:
  explicit Context(int number);

  const std::string& name() const { return name_; }  // "cuda:0"
  CUdevice device() const { return device_; }
  // Of all threads that use the device through the runtime API, such as PyTorch's.
  CUcontext handle() const { return handle_; }
  bool is_lost() const { return is_lost_; }

  // See check_result.
  void check(CUresult result, std::string_view doing) const {
    if (result != CUDA_SUCCESS) [[unlikely]]
      fail(result, doing);
  }

  // Calls `free` in this context, unless all is freed already. For destructors.
  template <class Free>
  void free(Free&& free) const noexcept;

 private:
  friend class CurrentContext;

  [[noreturn]] void fail(CUresult result, std::string_view doing) const;

  std::string name_;
  CUdevice device_ = 0;
  CUcontext handle_ = nullptr;
  mutable std::atomic<bool> is_lost_ = false;
};

// Calls of this thread go to a context, for as long as this lives; then to that of before, if there was one.
class CurrentContext {
 public:
  // One that is lost is a DeviceError.
  explicit CurrentContext(const Context& context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

 private:
  CUcontext before_ = nullptr;
};

template <class Free>
void Context::free(Free&& free) const noexcept {
  if (is_lost_)
    return;
  try {
    const CurrentContext current(*this);
    free(driver());
  } catch (const std::exception&) {
    // The context is lost, or the driver is gone because the process ends: nothing is left to free.
  }
}

// One for each device and process. A device that is not there is a user_error; one whose context was lost, a
// DeviceError.
std::shared_ptr<const Context> primary_context(int number);

}  // namespace tenon::runtime::cuda
