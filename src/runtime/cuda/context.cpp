#include "runtime/cuda/context.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace tenon::runtime::cuda {
namespace {

// What is left of a context that was lost; a driver that refuses says so again when the next is made.
void reset(CUdevice device) {
  driver().cuCtxSetCurrent(nullptr);
  driver().cuDevicePrimaryCtxRelease(device);
  driver().cuDevicePrimaryCtxReset(device);
}

}  // namespace

Context::Context(int number) : name_(fmt::format("cuda:{}", number)), device_(find_device(number)) {
  check_result(driver().cuDevicePrimaryCtxRetain(&handle_, device_), name_, "make a context");
}

void Context::fail(CUresult result, std::string_view doing) const {
  try {
    check_result(result, name_, doing);
  } catch (const DeviceError&) {
    is_lost_ = true;
    throw;
  }
  std::abort();  // not reached: the result is an error
}

CurrentContext::CurrentContext(const Context& context) {
  if (context.is_lost())
    throw DeviceError(fmt::format("{}: an earlier error has ended all that ran there", context.name()));
  context.check(driver().cuCtxGetCurrent(&before_), "tell the current context");
  if (before_ == context.handle_)
    before_ = nullptr;
  context.check(driver().cuCtxSetCurrent(context.handle_), "make its context current");
}

CurrentContext::~CurrentContext() {
  if (before_ != nullptr)
    driver().cuCtxSetCurrent(before_);
}

// Contexts are kept to the end of the process: making one takes longer than many a run.
std::shared_ptr<const Context> primary_context(int number) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<int, std::shared_ptr<const Context>>();
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Context>& context = contexts[number];
  if (context && context->is_lost()) {
    reset(context->device());
    context = nullptr;
  }
  if (!context)
    context = std::make_shared<const Context>(number);
  return context;
}

}  // namespace tenon::runtime::cuda
