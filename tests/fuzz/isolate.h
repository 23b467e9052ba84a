// isolate.h — runs numbered pieces of work in a child process, so that a crash, a sanitizer's report or a
// piece that does not end is caught, told with its number, and the rest still runs.
#pragma once

#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>

#include "base/child_process.h"
#include "base/error.h"

namespace tenon::fuzz {

// A number that parent and children see alike.
class SharedNumber {
 public:
  SharedNumber()
      : memory_(::mmap(nullptr, sizeof(Number), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED)
      throw user_error("there is no memory to share with a child process");
    number_ = new (memory_) Number(0);
  }
  ~SharedNumber() { ::munmap(memory_, sizeof(Number)); }
  SharedNumber(const SharedNumber&) = delete;
  SharedNumber& operator=(const SharedNumber&) = delete;

  std::atomic<int64_t>& operator*() const { return *number_; }

 private:
  using Number = std::atomic<int64_t>;
  void* memory_;
  Number* number_ = nullptr;
};

// By the clock a piece may take so many times as long, since others may use the processors as well.
constexpr unsigned kPatience = 20;

// From now on this process may use so many seconds of processor time.
inline void limit_processor_time(unsigned seconds) {
  std::signal(SIGPROF, [](int) {
    constexpr char kText[] = "it used more processor time than it may\n";
    if (::write(STDOUT_FILENO, kText, sizeof kText - 1) >= 0)
      ::_exit(1);
    ::_exit(2);
  });
  const itimerval limit = {.it_interval = {},
                           .it_value = {.tv_sec = static_cast<time_t>(seconds), .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &limit, nullptr);
}

// Calls work(i) for i in [0, count); returns how many pieces went wrong. Each may use `seconds` of processor
// time.
template <class Work>
int64_t run_isolated(int64_t count, unsigned seconds, Work&& work) {
  const SharedNumber shared;
  std::atomic<int64_t>& at = *shared;
  int64_t failures = 0;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  while (at < count) {
    const ChildEnd end = run_in_child(kPatience * seconds, [&] {
      for (; at < count; ++at) {
        if (terminal && at % 100 == 0)
          std::fprintf(stderr, "\r%ld of %ld", static_cast<long>(at.load()), static_cast<long>(count));
        ::alarm(kPatience * seconds);  // for each piece anew
        limit_processor_time(seconds);
        work(at.load());
      }
      return "";
    });
    if (end.failure.empty())
      break;
    ++failures;
    std::printf("input %ld: %s\n", static_cast<long>(at.load()), end.failure.c_str());
    std::fflush(stdout);
    ++at;
  }
  if (terminal)
    std::fprintf(stderr, "\r%20s\r", "");
  return failures;
}

}  // namespace tenon::fuzz
