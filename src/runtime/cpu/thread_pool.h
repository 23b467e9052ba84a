// thread_pool.h — threads that run the tasks of a kernel; to fork and join them takes less than a
// microsecond.
//
// A run is announced by one word, `Run::start`, which holds its number and how many threads take part. Each
// thread has a slot, and takes part by claiming the slot for this number; then the caller waits until it is
// done. What a thread has not claimed when the caller is through with its own share, the caller claims and
// does itself. So nobody waits for a thread that sleeps, or that the system has put aside; and a thread that
// comes late finds its slot claimed, and does not touch a run that may be over.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "target/target.h"

namespace tenon::runtime {

constexpr int kMostRunThreads = 1024;  // that a pool may have, and a run ask for

class ThreadPool {
 public:
  // Task number `task` of a run. `worker`, in [0, size()), tells apart those that run at the same time within
  // one call of run(), so scratch memory that is held per worker must belong to the call: two calls may both
  // have a worker 0.
  using Task = void (*)(void* context, int64_t task, int worker);

  // The calling thread counts, so a pool of 1 starts none. Idle threads wait for more work for as long as
  // `spin`, ready to start at once, and then sleep. They do not spin where there are fewer cores than
  // threads, nor once another pool is run: two pools that spin would take each other's cores.
  explicit ThreadPool(int threads, std::chrono::nanoseconds spin = std::chrono::microseconds(80));
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // Runs tasks 0 to `tasks` - 1, each once, and returns when all have ended. As many tasks as threads, or
  // fewer, go one to each thread, so that a thread finds in its cache what it left there; more go to whoever
  // is free, in their order. Tasks must not wait for each other. If some throw, the others run nevertheless,
  // and then the error of the first is thrown on. Called within a task, or while another thread runs the
  // pool, all tasks run here and now, as worker 0. Nothing is allocated.
  void run(int64_t tasks, Task task, void* context);

  // The same with anything that is called as `work(task, worker)`.
  template <class Work>
  void run(int64_t tasks, Work&& work) {
    using Callee = std::remove_reference_t<Work>;
    run(
        tasks, [](void* callee, int64_t task, int worker) { (*static_cast<Callee*>(callee))(task, worker); },
        const_cast<void*>(static_cast<const void*>(&work)));
  }

  // How many threads sleep now.
  int count_sleeping() const;

 private:
  // The error of the first task that failed, if any has.
  struct Failure {
    int64_t task = 0;
    std::exception_ptr error;

    void take(Failure other);
    void rethrow() const;
  };

  // Of one thread, on a cache line of its own; the first is the caller's.
  struct alignas(kCacheLine) Slot {
    std::atomic<uint64_t> state = 0;  // 2 * number of the run that it was claimed for, and 1 more once done
    std::atomic<uint32_t> sleeps = 0;
    Failure failure;
  };

  // What is run, in one cache line with the word that announces it.
  struct alignas(kCacheLine) Run {
    std::atomic<uint64_t> start = 0;
    int64_t tasks = 0;
    Task task = nullptr;
    void* context = nullptr;
  };

  struct Prepared {};
  ThreadPool(int threads, std::chrono::nanoseconds spin, Prepared);

  void work(int worker);
  static void run_alone(int64_t tasks, Task task, void* context);
  void run_together(int64_t tasks, Task task, void* context);
  void announce(uint64_t start);
  void do_share(int worker, Failure& failure);
  void join(uint64_t start, Failure& failure);
  template <class Ready>
  void wait_until(Slot& slot, Ready ready);
  static void wake(Slot& slot);
  static void call(Task task, void* context, int64_t number, int worker, Failure& failure);

  // What is only read stands apart from what each run writes, or it would leave the caches of the others.
  const int size_;
  const std::chrono::nanoseconds spin_;
  const std::unique_ptr<Slot[]> slots_;
  std::vector<std::thread> threads_;
  alignas(kCacheLine) std::atomic<bool> busy_ = false;
  alignas(kCacheLine) std::atomic<int64_t> next_ = 0;  // task, where there are more than threads
  Run run_;
};

// The one pool of this size in the process, made when it is first asked for.
ThreadPool& shared_pool(int threads);

}  // namespace tenon::runtime
