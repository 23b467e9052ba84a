#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace tenon {

using namespace std::chrono_literals;

namespace {

bool quiet = false;

}  // namespace

void be_quiet() { quiet = true; }
bool is_quiet() { return quiet; }

Progress::Progress(std::string what, int64_t total, std::function<Time()> now)
    : what_(std::move(what)),
      total_(total),
      on_terminal_(::isatty(STDERR_FILENO) != 0 && !is_quiet()),
      now_(std::move(now)),
      start_(now_()),
      next_(start_ + 2s) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (shown_)
    std::fputs("\r\033[K", stderr);
  shown_ = false;
}

// If what is left takes as long as what was done, a step each.
std::string Progress::time_left() const {
  const int64_t done = done_ - 1;  // one has just begun
  if (done == 0)
    return "";
  const std::chrono::duration<double> spent = now_() - start_;
  const double seconds = spent.count() / static_cast<double>(done) * static_cast<double>(total_ - done);
  constexpr double kMinute = 60, kLongest = 100;
  return seconds < kLongest ? fmt::format(", {:.0f} s left", seconds)
                            : fmt::format(", {:.0f} min left", seconds / kMinute);
}

void Progress::step(std::string_view detail) {
  ++done_;
  if (!on_terminal_ || now_() < next_)
    return;
  const std::string line = total_ == 0 ? fmt::format("{}: {}", what_, detail)
                                       : fmt::format("{}: {} of {}{}{}{}", what_, done_, total_, time_left(),
                                                     detail.empty() ? "" : ", ", detail);
  std::fputs(fmt::format("\r\033[K{:.79}", line).c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
  next_ = now_() + 100ms;
}

}  // namespace tenon
