#include "runtime/cpu/thread_pool.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "runtime/forks.h"
#include "target/resources.h"

namespace tenon::runtime {
namespace {

using Clock = std::chrono::steady_clock;

// The word that announces a run: its number, and how many threads take part.
constexpr int kCountBits = 16;
constexpr uint64_t kStop = ~uint64_t{0};  // concerns every thread
uint64_t number_of(uint64_t start) { return start >> kCountBits; }
int count_of(uint64_t start) { return static_cast<int>(start & ((1 << kCountBits) - 1)); }
uint64_t start_of(uint64_t number, int count) { return number << kCountBits | static_cast<uint64_t>(count); }

// What a slot holds.
uint64_t claimed(uint64_t start) { return 2 * number_of(start); }
uint64_t done(uint64_t start) { return 2 * number_of(start) + 1; }

// Whether the slot was free for this run, and now holds `state`. `before` is what it is thought to hold.
bool claim(std::atomic<uint64_t>& slot, uint64_t before, uint64_t start, uint64_t state) {
  while (before < claimed(start))
    if (slot.compare_exchange_strong(before, state))
      return true;
  return false;
}

// The pool that was run last, whose threads may spin. It is only compared, and may be gone.
std::atomic<const ThreadPool*> last_run = nullptr;

thread_local bool within_task = false;

// While it lives, this thread is within a task.
class WithinTask {
 public:
  WithinTask() { within_task = true; }
  ~WithinTask() { within_task = before_; }
  WithinTask(const WithinTask&) = delete;
  WithinTask& operator=(const WithinTask&) = delete;

 private:
  bool before_ = within_task;
};

// Tells the core that this thread waits, so that it takes less power, and nothing from a thread beside it.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("isb");  // "yield" takes no time at all on most arm64 cores
#endif
}

// Whether it became `ready` before `stop`ped or out of time. The clock is read seldom, for it costs more than
// looking.
template <class Ready, class Stop>
bool spin_until(Ready ready, Stop stop, std::chrono::nanoseconds most) {
  constexpr int kLooks = 32;
  const auto look = [&] {
    for (int i = 0; i < kLooks; ++i) {
      if (ready())
        return true;
      pause();
    }
    return false;
  };
  if (look())
    return true;
  for (const Clock::time_point begin = Clock::now(); !stop() && Clock::now() - begin < most;)
    if (look())
      return true;
  return false;
}

int checked_size(int threads) {
  static_assert(kMostRunThreads < (1 << kCountBits) - 1);  // of which kStop has all bits
  CHECK(threads >= 1 && threads <= kMostRunThreads, "a pool of {} threads", threads);
  return threads;
}

}  // namespace

void ThreadPool::Failure::take(Failure other) {
  if (other.error && (!error || other.task < task))
    *this = std::move(other);
}

void ThreadPool::Failure::rethrow() const {
  if (error)
    std::rethrow_exception(error);
}

ThreadPool::ThreadPool(int threads, std::chrono::nanoseconds spin, Prepared)
    : size_(checked_size(threads)),
      spin_(threads <= available_cores() ? spin : std::chrono::nanoseconds(0)),
      slots_(std::make_unique<Slot[]>(static_cast<size_t>(threads))) {}

// Delegates, so that the destructor stops the threads that did start when one cannot.
ThreadPool::ThreadPool(int threads, std::chrono::nanoseconds spin) : ThreadPool(threads, spin, Prepared()) {
  try {
    for (int worker = 1; worker < size_; ++worker)
      threads_.emplace_back(&ThreadPool::work, this, worker);
  } catch (const std::system_error& error) {
    throw user_error("cannot start {} threads: {}", threads, error.what());
  }
}

ThreadPool::~ThreadPool() {
  announce(kStop);
  for (std::thread& thread : threads_)
    thread.join();
}

int ThreadPool::count_sleeping() const {
  return static_cast<int>(std::count_if(slots_.get() + 1, slots_.get() + size_,
                                        [](const Slot& slot) { return slot.sleeps != 0; }));
}

void ThreadPool::run(int64_t tasks, Task task, void* context) {
  if (tasks <= 1 || size_ == 1 || within_task || busy_.exchange(true))
    run_alone(tasks, task, context);
  else
    run_together(tasks, task, context);
}

void ThreadPool::run_alone(int64_t tasks, Task task, void* context) {
  Failure failure;
  {
    const WithinTask within;
    for (int64_t number = 0; number < tasks; ++number)
      call(task, context, number, 0, failure);
  }
  failure.rethrow();
}

void ThreadPool::run_together(int64_t tasks, Task task, void* context) {
  if (last_run.load() != this)
    last_run.store(this);
  run_.tasks = tasks;
  run_.task = task;
  run_.context = context;
  next_.store(0, std::memory_order_relaxed);
  const auto count = static_cast<int>(std::min<int64_t>(tasks, size_));
  const uint64_t start = start_of(number_of(run_.start.load()) + 1, count);
  announce(start);

  Failure failure;
  {
    const WithinTask within;
    do_share(0, failure);
    join(start, failure);
  }
  busy_.store(false);
  failure.rethrow();
}

void ThreadPool::announce(uint64_t start) {
  run_.start.store(start);
  for (int worker = 1; worker < std::min(count_of(start), size_); ++worker)
    wake(slots_[worker]);
}

void ThreadPool::do_share(int worker, Failure& failure) {
  if (run_.tasks <= size_)
    return call(run_.task, run_.context, worker, worker, failure);
  for (int64_t number = 0; (number = next_.fetch_add(1, std::memory_order_relaxed)) < run_.tasks;)
    call(run_.task, run_.context, number, worker, failure);
}

// Claims what others have not, first of all: if each had one task, it is done here; if there were more, none
// is left.
void ThreadPool::join(uint64_t start, Failure& failure) {
  for (int worker = 1; worker < count_of(start); ++worker)
    if (claim(slots_[worker].state, slots_[worker].state.load(), start, done(start)) && run_.tasks <= size_)
      call(run_.task, run_.context, worker, 0, failure);
  for (int worker = 1; worker < count_of(start); ++worker) {
    Slot& slot = slots_[worker];
    wait_until(slots_[0], [&] { return slot.state.load() == done(start); });
    failure.take(std::exchange(slot.failure, {}));
  }
}

void ThreadPool::work(int worker) {
  const WithinTask within;
  Slot& slot = slots_[worker];
  for (uint64_t start = 0; start != kStop;) {
    const uint64_t seen = start;
    wait_until(slot, [&] {
      start = run_.start.load();
      return start != seen && worker < count_of(start);
    });
    // As a rule the last run it saw is the last that its slot was claimed for. A guess, for to look would
    // fetch the cache line once more.
    if (start == kStop || !claim(slot.state, done(seen), start, claimed(start)))
      continue;
    do_share(worker, slot.failure);
    slot.state.store(done(start));
    wake(slots_[0]);
  }
}

// Either the sleeper sees that it is ready, or who made it so sees that it sleeps, because all of these
// stores and loads have one order.
template <class Ready>
void ThreadPool::wait_until(Slot& slot, Ready ready) {
  if (spin_until(
          ready, [&] { return last_run.load() != this; }, spin_))
    return;
  for (slot.sleeps.store(1); !ready(); slot.sleeps.store(1))
    slot.sleeps.wait(1);
  slot.sleeps.store(0);
}

void ThreadPool::wake(Slot& slot) {
  if (slot.sleeps.load() == 0)
    return;
  slot.sleeps.store(0);
  slot.sleeps.notify_one();
}

void ThreadPool::call(Task task, void* context, int64_t number, int worker, Failure& failure) {
  try {
    task(context, number, worker);
  } catch (...) {
    failure.take({number, std::current_exception()});
  }
}

ThreadPool& shared_pool(int threads) {
  static std::mutex& mutex = []() -> std::mutex& {
    auto& made = *new std::mutex;
    hold_at_forks(made);
    return made;
  }();
  static auto& pools = *new std::map<int, ThreadPool>;  // never destroyed: its threads may outlive what is
  const std::lock_guard lock(mutex);
  return pools.try_emplace(threads, threads).first->second;
}

}  // namespace tenon::runtime
