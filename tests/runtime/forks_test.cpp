// Processes that are forked while other threads are at work.
#include "runtime/forks.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/child_process.h"
#include "runtime/cpu/thread_pool.h"

namespace tenon::runtime {
namespace {

constexpr unsigned kSeconds = 600;  // more than any child takes that is not stuck
constexpr int kForks = 100;

// That children get through `work`, which another thread does again and again meanwhile. It says what went
// wrong.
template <class Work>
void expect_through(Work&& work) {
  work();
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested())
      work();
  });
  for (int i = 0; i < kForks; ++i) {
    const ChildEnd end = run_in_child(kSeconds, work);
    ASSERT_EQ(end.failure, "") << "fork " << i;
    ASSERT_EQ(end.report, "") << "fork " << i;
  }
}

TEST(Forks, WaitForMutexes) {
  static std::mutex mutex;
  hold_at_forks(mutex);
  expect_through([&] {
    const std::lock_guard lock(mutex);
    return std::string();
  });
  forget_at_forks(mutex);
}

TEST(Forks, LeavePoolsThatRun) {
  expect_through([]() -> std::string {
    std::atomic<int64_t> sum = 0;
    shared_pool(2).run(10, [&](int64_t task, int) { sum += task; });
    return sum == 45 ? "" : "a wrong sum";
  });
}

// By a thread that waits for the one that forks.
TEST(Forks, GoOnWhereAMutexIsHeldForLong) {
  static std::mutex mutex;
  hold_at_forks(mutex);
  {
    const std::lock_guard lock(mutex);
    std::thread([] { EXPECT_EQ(run_in_child(kSeconds, [] { return "done"; }).report, "done"); }).join();
  }
  forget_at_forks(mutex);
}

}  // namespace
}  // namespace tenon::runtime
