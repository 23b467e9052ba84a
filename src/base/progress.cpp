#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace tenon {

using namespace std::chrono_literals;

Progress::Progress(std::string what, int64_t total, std::function<Time()> now)
    : what_(std::move(what)),
      total_(total),
      on_terminal_(::isatty(STDERR_FILENO) != 0),
      now_(std::move(now)),
      next_(now_() + 2s) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_)
    std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void Progress::step(std::string_view detail) {
  ++done_;
  if (!on_terminal_ || now_() < next_)
    return;
  const std::string line = fmt::format("{}: {} of {} {}", what_, done_, total_, detail);
  std::fputs(fmt::format("\r\033[K{:.79}", line).c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
  next_ = now_() + 100ms;
}

}  // namespace tenon
