#include "loops/isl.h"

#include <isl/options.h>
#include <pthread.h>

#include <chrono>
#include <mutex>

namespace tenon::loops {
namespace {

using std::chrono::nanoseconds;

constexpr nanoseconds kMostTime = std::chrono::seconds(3);

// How long a thread has computed.
nanoseconds time_of(clockid_t clock) {
  timespec time;
  CHECK(clock_gettime(clock, &time) == 0, "a thread has no clock");
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

}  // namespace

// The time is that of the thread and not that on the wall, so that a busy machine decides the same.
Watch::Watch(isl_ctx* context) {
  clockid_t clock;
  CHECK(pthread_getcpuclockid(pthread_self(), &clock) == 0, "a thread has no clock");
  thread_ = std::thread([this, context, clock, end = time_of(clock) + kMostTime] {
    std::unique_lock lock(mutex_);
    while (!is_over_) {
      const nanoseconds left = end - time_of(clock);
      if (left <= nanoseconds(0))
        return isl_ctx_abort(context);
      woken_.wait_for(lock, left);
    }
  });
}

Watch::~Watch() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  woken_.notify_one();
  thread_.join();
}

Context::Context() : context_(isl_ctx_alloc()) {
  isl_options_set_on_error(get(), ISL_ON_ERROR_CONTINUE);
  watch_ = std::make_unique<Watch>(get());
}

void check_done(isl_ctx* context, bool done) {
  if (done)
    return;
  // What is given up while it reads a text is called a syntax error.
  CHECK(isl_ctx_aborted(context), "the integer set library failed: {}", isl_ctx_last_error_msg(context));
  throw Undecided{"it would take too long"};
}

}  // namespace tenon::loops
