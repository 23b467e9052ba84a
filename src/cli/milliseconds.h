// milliseconds.h — how long something takes.
#pragma once

#include <chrono>

namespace tenon::cli {

template <class Work>
double milliseconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace tenon::cli
