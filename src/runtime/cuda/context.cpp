#include "runtime/cuda/context.h"

#include <cstdlib>
#include <map>
#include <mutex>

namespace tenon::runtime::cuda {
namespace {

// CUDA gives a process no second context after such an error.
[[noreturn]] void refuse_lost(const Context& context) {
  throw DeviceError(
      fmt::format("{}: an earlier error has ended all that this process runs there", context.name()));
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
    refuse_lost(context);
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
  if (context && context->is_lost())
    refuse_lost(*context);
  if (!context)
    context = std::make_shared<const Context>(number);
  return context;
}

}  // namespace tenon::runtime::cuda
