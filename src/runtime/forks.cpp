#include "runtime/forks.h"

#include <pthread.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace tenon::runtime {
namespace {

// Who holds a mutex for longer may wait for something that the thread that forks holds.
constexpr std::chrono::milliseconds kPatience(1000);

struct Mutexes {
  std::mutex mutex;  // of these two
  std::set<std::mutex*> all;
  std::vector<std::mutex*> held;  // by a fork
};

Mutexes& mutexes() {
  static Mutexes& mutexes = *new Mutexes;  // never destroyed: forks may come until the very end
  return mutexes;
}

bool lock_in_time(std::mutex& mutex, std::chrono::steady_clock::time_point end) {
  while (!mutex.try_lock()) {
    if (std::chrono::steady_clock::now() > end)
      return false;
    std::this_thread::yield();
  }
  return true;
}

void before_fork() {
  Mutexes& known = mutexes();
  known.mutex.lock();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (std::mutex* mutex : known.all)
    if (lock_in_time(*mutex, end))
      known.held.push_back(mutex);
}

void after_fork() {
  Mutexes& known = mutexes();
  for (std::mutex* mutex : known.held)
    mutex->unlock();
  known.held.clear();
  known.mutex.unlock();
}

}  // namespace

void hold_at_forks(std::mutex& mutex) {
  static const int once = ::pthread_atfork(before_fork, after_fork, after_fork);
  (void)once;
  const std::lock_guard lock(mutexes().mutex);
  mutexes().all.insert(&mutex);
}

void forget_at_forks(std::mutex& mutex) {
  const std::lock_guard lock(mutexes().mutex);
  mutexes().all.erase(&mutex);
}

}  // namespace tenon::runtime
