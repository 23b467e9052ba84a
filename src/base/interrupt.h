// interrupt.h — what is half done when somebody ends the program, and must not stay behind.
#pragma once

#include <filesystem>
#include <functional>

namespace tenon {

// From now on, SIGINT, SIGTERM and SIGHUP remove all leftovers before they end the program; those that were
// ignored still are. For main, before any other thread is started.
void remove_leftovers_when_ended();

// Runs work that a signal must not divide: the program ends before or after it.
void without_interruption(const std::function<void()>& work);

// A file or folder that is removed when a signal ends the program, for as long as this object lives. Whoever
// makes it removes it otherwise.
class Leftover {
 public:
  // `make` creates it, and says where, without being interrupted.
  explicit Leftover(const std::function<std::filesystem::path()>& make);
  ~Leftover();
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int process() const { return process_; }

 private:
  std::filesystem::path path_;
  int process_;  // that made it: a fork of it has no right to remove it
};

}  // namespace tenon
