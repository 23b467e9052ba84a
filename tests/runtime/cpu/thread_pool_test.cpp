#include "runtime/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>

#include "base/expect_error.h"

namespace tenon {

using runtime::kMostRunThreads;
using runtime::shared_pool;
using runtime::ThreadPool;

namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

// Always sleeping between runs, as usual, and never.
constexpr nanoseconds kSpins[] = {nanoseconds(0), std::chrono::microseconds(80), hours(1)};

void wait_until_all_sleep(const ThreadPool& pool) {
  while (pool.count_sleeping() < pool.size() - 1)
    std::this_thread::yield();
}

// How often each task ran; fails where one ran as a worker that there is not.
std::vector<int> count_runs(ThreadPool& pool, int64_t tasks) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(tasks));
  std::atomic<int> strange = 0;
  pool.run(tasks, [&](int64_t task, int worker) {
    ++counts[static_cast<size_t>(task)];
    strange += worker < 0 || worker >= pool.size() ? 1 : 0;
  });
  EXPECT_EQ(strange, 0);
  return {counts.begin(), counts.end()};
}

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const nanoseconds spin : kSpins)
    for (const int threads : {1, 2, 3, 8}) {
      ThreadPool pool(threads, spin);
      EXPECT_EQ(pool.size(), threads);
      for (const int64_t tasks : {0, 1, 2, 3, 7, 8, 9, 1000})
        EXPECT_EQ(count_runs(pool, tasks), std::vector<int>(static_cast<size_t>(tasks), 1))
            << threads << " threads, " << tasks << " tasks";
    }
}

TEST(ThreadPool, TakesAFunctionAndItsContext) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum = 0;
  pool.run(
      100, [](void* context, int64_t task, int) { *static_cast<std::atomic<int64_t>*>(context) += task; },
      &sum);
  EXPECT_EQ(sum, 4950);
}

TEST(ThreadPool, OfOneThreadRunsItsTasksInOrderOnTheCaller) {
  ThreadPool pool(1);
  std::vector<int64_t> order;
  pool.run(3, [&](int64_t task, int worker) {
    EXPECT_EQ(worker, 0);
    order.push_back(task);
  });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2}));
}

TEST(ThreadPool, IsNotWithoutThreads) {
  for (const int threads : {-1, 0, kMostRunThreads + 1})
    EXPECT_THROW(ThreadPool pool(threads), InternalError) << threads;
}

// Each worker's count is its own: the sum is right only if no two tasks run as the same worker at once.
TEST(ThreadPool, WorkersAreUniqueWithinARun) {
  ThreadPool pool(4);
  for (const int64_t tasks : {3, 4, 10000}) {
    std::vector<int64_t> counts(4);
    for (int repeat = 0; repeat < 100; ++repeat)
      pool.run(tasks, [&](int64_t, int worker) { ++counts[static_cast<size_t>(worker)]; });
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), int64_t{0}), 100 * tasks);
  }
}

// The caller keeps to its own task until the other thread has done its own, so it cannot have taken it.
TEST(ThreadPool, GivesEachThreadItsTaskWhereThereAreAsMany) {
  for (const nanoseconds spin : kSpins) {
    ThreadPool pool(2, spin);
    for (int repeat = 0; repeat < 50; ++repeat) {
      std::atomic<bool> other_ran = false;
      std::vector<int> workers(2);
      pool.run(2, [&](int64_t task, int worker) {
        workers[static_cast<size_t>(task)] = worker;
        if (task == 0)
          other_ran.wait(false);
        other_ran = true;
        other_ran.notify_one();
      });
      EXPECT_EQ(workers, (std::vector<int>{0, 1}));
    }
  }
}

TEST(ThreadPool, WakesThreadsThatSleep) {
  ThreadPool pool(3);
  for (int repeat = 0; repeat < 20; ++repeat) {
    wait_until_all_sleep(pool);
    std::atomic<int> arrived = 0;
    pool.run(3, [&](int64_t, int) {  // returns only if all three threads came
      ++arrived;
      while (arrived < 3)
        std::this_thread::yield();
    });
    EXPECT_EQ(arrived, 3);
  }
}

TEST(ThreadPool, LetsThreadsSleepOnceAnotherPoolIsRun) {
  ThreadPool first(2, hours(1)), second(2, hours(1));
  for (int repeat = 0; repeat < 10; ++repeat) {
    count_runs(first, 100);
    wait_until_all_sleep(second);  // would take an hour
    count_runs(second, 100);
    wait_until_all_sleep(first);
  }
}

TEST(ThreadPool, ThrowsTheErrorOfTheFirstTaskAfterAllHaveEnded) {
  for (const int threads : {1, 3})
    for (const int64_t tasks : {1, 3, 100}) {
      ThreadPool pool(threads);
      std::atomic<int64_t> ended = 0;
      const auto fail = [&](int64_t task, int) {
        ++ended;
        throw UserError(fmt::format("task {}", task));
      };
      expect_error<UserError>([&] { pool.run(tasks, fail); }, "task 0");
      EXPECT_EQ(ended, tasks);
      ended = 0;
      const auto fail_late = [&](int64_t task, int) {
        ++ended;
        if (task >= tasks - 1)
          throw UserError("the last");
      };
      expect_error<UserError>([&] { pool.run(tasks, fail_late); }, "the last");
      EXPECT_EQ(ended, tasks);
      EXPECT_EQ(count_runs(pool, 10), std::vector<int>(10, 1)) << "after an error";
    }
}

// Counts the tasks that run elsewhere, of so many that other threads would have time to come.
int64_t count_elsewhere(ThreadPool& pool) {
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int64_t> elsewhere = 0;
  pool.run(100000, [&](int64_t, int worker) {
    if (worker != 0 || std::this_thread::get_id() != here)
      ++elsewhere;
  });
  return elsewhere;
}

TEST(ThreadPool, RunsInlineWithinATask) {
  ThreadPool pool(2), other(2);
  for (const int64_t tasks : {1, 2, 10}) {
    std::atomic<int64_t> elsewhere = 0;
    pool.run(tasks, [&](int64_t, int) { elsewhere += count_elsewhere(pool) + count_elsewhere(other); });
    EXPECT_EQ(elsewhere, 0) << tasks;
  }
}

TEST(ThreadPool, SecondCallerRunsItsTasksItself) {
  ThreadPool pool(2);
  std::atomic<bool> second_is_through = false;
  std::thread second;
  pool.run(2, [&](int64_t task, int) {  // goes on only when the second caller has ended its run
    if (task != 0)
      return;
    second = std::thread([&] {
      std::vector<std::thread::id> threads(4);
      pool.run(4, [&](int64_t inner, int worker) {
        EXPECT_EQ(worker, 0);
        threads[static_cast<size_t>(inner)] = std::this_thread::get_id();
      });
      EXPECT_EQ(threads, std::vector<std::thread::id>(4, std::this_thread::get_id()));
      second_is_through = true;
      second_is_through.notify_one();
    });
    second_is_through.wait(false);
  });
  second.join();
}

// Runs of all sorts from three threads at once, with pauses of all lengths.
TEST(ThreadPool, StandsAStorm) {
  for (const nanoseconds spin : kSpins) {
    ThreadPool pool(3, spin);
    std::atomic<int64_t> wrong = 0;
    const auto storm = [&](uint64_t seed) {
      for (int repeat = 0; repeat < 4000; ++repeat) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const int64_t tasks = static_cast<int64_t>(seed >> 60);
        std::vector<int> counts(static_cast<size_t>(tasks));
        pool.run(tasks, [&](int64_t task, int) { ++counts[static_cast<size_t>(task)]; });
        wrong += counts == std::vector<int>(static_cast<size_t>(tasks), 1) ? 0 : 1;
        for (uint64_t pause = (seed >> 40) % (uint64_t{1} << (seed >> 33) % 12); pause > 0; --pause)
          (void)pool.count_sleeping();
      }
    };
    std::thread second(storm, 1), third(storm, 2);
    storm(3);
    second.join();
    third.join();
    EXPECT_EQ(wrong, 0);
  }
}

TEST(ThreadPool, CanBeMadeAndDestroyedAtOnce) {
  for (const nanoseconds spin : kSpins)
    for (int repeat = 0; repeat < 20; ++repeat) {
      ThreadPool pool(4, spin);
      if (repeat % 2 == 0)
        count_runs(pool, 4);
    }
}

TEST(SharedPool, IsOneBySize) {
  EXPECT_EQ(shared_pool(2).size(), 2);
  EXPECT_EQ(&shared_pool(2), &shared_pool(2));
  EXPECT_NE(&shared_pool(2), &shared_pool(3));
  EXPECT_EQ(count_runs(shared_pool(3), 50), std::vector<int>(50, 1));
  EXPECT_EQ(count_runs(shared_pool(2), 50), std::vector<int>(50, 1));
}

}  // namespace
}  // namespace tenon
