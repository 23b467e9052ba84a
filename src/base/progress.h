// progress.h — a line on the terminal that says how far a long task is.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tenon {

// From now on no progress is shown, nor anything else on stderr but errors.
void be_quiet();
bool is_quiet();

// Shows "WHAT: 12 of 431, 8 s left, DETAIL" on stderr, from two seconds after the start on, and erases it in
// the end. Where stderr is no terminal, it shows nothing. Where nobody knows how many steps there will be,
// which is a total of 0, "WHAT: DETAIL".
class Progress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  Progress(std::string what, int64_t total, std::function<Time()> now = std::chrono::steady_clock::now);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(std::string_view detail);  // the next of them begins
  void clear();                        // erases the line, for others to write; a later step shows it again

 private:
  std::string time_left() const;

  std::string what_;
  int64_t total_, done_ = 0;
  bool on_terminal_, shown_ = false;
  std::function<Time()> now_;
  Time start_, next_;  // when it began, and when the line may be shown again
};

}  // namespace tenon
