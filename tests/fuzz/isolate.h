// isolate.h — runs numbered pieces of work in a child process, so that a crash, a sanitizer's report or a
// piece that does not end is caught, told with its number, and the rest still runs.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <new>

namespace tenon::fuzz {

// Calls work(i) for i in [0, count); returns how many pieces went wrong. Each may take `seconds`.
template <class Work>
int64_t run_isolated(int64_t count, unsigned seconds, Work&& work) {
  void* shared = ::mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* at = new (shared) std::atomic<int64_t>(0);
  int64_t failures = 0;
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  while (*at < count) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (; *at < count; ++*at) {
        if (terminal && *at % 100 == 0)
          std::fprintf(stderr, "\r%ld of %ld", static_cast<long>(at->load()), static_cast<long>(count));
        ::alarm(seconds);
        work(at->load());
      }
      std::fflush(stdout);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      break;
    ++failures;
    std::printf("input %ld: %s\n", static_cast<long>(at->load()),
                WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "did not end in time" : "crashed");
    std::fflush(stdout);
    ++*at;
  }
  if (terminal)
    std::fprintf(stderr, "\r%20s\r", "");
  ::munmap(shared, sizeof(std::atomic<int64_t>));
  return failures;
}

}  // namespace tenon::fuzz
