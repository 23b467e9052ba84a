#include "base/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <mutex>
#include <set>
#include <thread>

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::mutex mutex;

std::set<const Leftover*>& leftovers() {
  static auto& all = *new std::set<const Leftover*>;  // not destroyed: the thread below outlives main
  return all;
}

// Other threads may still write into a folder.
void remove_whole(const fs::path& path) {
  constexpr int kAttempts = 100;
  std::error_code ignored;
  for (int i = 0; i < kAttempts && fs::exists(fs::symlink_status(path, ignored)); ++i)
    fs::remove_all(path, ignored);
}

[[noreturn]] void end_on(sigset_t signals) {
  int signal = 0;
  while (::sigwait(&signals, &signal) != 0) {
  }
  mutex.lock();  // and never unlocked: nothing new is made
  for (const Leftover* leftover : leftovers())
    if (leftover->process() == ::getpid())
      remove_whole(leftover->path());
  // What waits for the program wants to see that a signal ended it.
  ::signal(signal, SIG_DFL);
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  ::kill(::getpid(), signal);
  for (;;)
    ::pause();
}

}  // namespace

// A thread waits for them, which may do what the handler of a signal may not.
void remove_leftovers_when_ended() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
      ::sigaddset(&signals, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(end_on, signals).detach();
}

void without_interruption(const std::function<void()>& work) {
  const std::lock_guard lock(mutex);
  work();
}

Leftover::Leftover(const std::function<fs::path()>& make) : process_(::getpid()) {
  const std::lock_guard lock(mutex);
  path_ = make();
  leftovers().insert(this);
}

Leftover::~Leftover() {
  const std::lock_guard lock(mutex);
  leftovers().erase(this);
}

}  // namespace tenon
