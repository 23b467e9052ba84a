#include "base/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "base/interrupt.h"

namespace tenon {
namespace {

constexpr char kEndOfReport = '\n';  // a report without it was cut short

// noexcept: an exception must not unwind into the parent's half of the program.
[[noreturn]] void be_child(pid_t parent, unsigned seconds, const std::function<std::string()>& work,
                           int out) noexcept {
  ::alarm(seconds);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody waits for us once the parent is gone
  if (::getppid() != parent)           // which it was before we asked for the signal
    ::_exit(0);
  sigset_t none;  // the parent waits for some in a thread, which we do not have
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  remove_leftovers_when_ended();
  const std::string report = work() + kEndOfReport;
  for (size_t at = 0; at < report.size();) {
    const ssize_t written = ::write(out, report.data() + at, report.size() - at);
    if (written <= 0)
      break;
    at += static_cast<size_t>(written);
  }
  std::fflush(stdout);
  ::_exit(0);
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  return text;
}

}  // namespace

ChildEnd run_in_child(unsigned seconds, const std::function<std::string()>& work) {
  std::fflush(stdout);  // or the child would print it again
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw user_error("cannot make a pipe: {}", std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    be_child(parent, seconds, work, ends[1]);
  }
  if (child < 0) {
    const int error = errno;
    ::close(ends[0]);
    ::close(ends[1]);
    throw user_error("cannot start a process: {}", std::strerror(error));
  }
  ::close(ends[1]);
  ChildEnd end;
  end.report = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child) {
    end.failure = fmt::format("nobody knows how it ended: {}", std::strerror(errno));
  } else if (WIFSIGNALED(status)) {
    end.failure = WTERMSIG(status) == SIGALRM ? fmt::format("it did not end within {} s", seconds)
                                              : fmt::format("it crashed with signal {}", WTERMSIG(status));
  } else if (WEXITSTATUS(status) != 0) {
    end.failure = fmt::format("it exited with status {}", WEXITSTATUS(status));
  } else if (end.report.empty() || end.report.back() != kEndOfReport) {
    end.failure = "it ended before it was done";
  } else {
    end.report.pop_back();
  }
  return end;
}

}  // namespace tenon
