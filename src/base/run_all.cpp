#include "base/run_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace tenon {

void run_all(size_t count, int threads, const std::function<void(size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++)
      try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(static_cast<size_t>(threads), count); ++i)
    others.emplace_back(take);
  take();
  for (std::thread& other : others)
    other.join();
  for (const std::exception_ptr& error : errors)
    if (error)
      std::rethrow_exception(error);
}

}  // namespace tenon
