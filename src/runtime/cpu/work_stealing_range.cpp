#include "runtime/cpu/work_stealing_range.h"

#include "base/error.h"

namespace tenon::runtime {

namespace {

uint64_t word_of(const WorkStealingRange::Iterations& iterations) {
  return static_cast<uint64_t>(iterations.begin) | static_cast<uint64_t>(iterations.end) << 32;
}

WorkStealingRange::Iterations iterations_of(uint64_t word) {
  return {static_cast<int64_t>(word & 0xffffffff), static_cast<int64_t>(word >> 32)};
}

// Takes the first half of what is left, or the last; the larger one where halves differ.
WorkStealingRange::Iterations take_half(std::atomic<uint64_t>& rest, bool first) {
  uint64_t word = rest.load(std::memory_order_relaxed);
  for (WorkStealingRange::Iterations left = iterations_of(word); !left.empty(); left = iterations_of(word)) {
    const int64_t count = (left.end - left.begin + 1) / 2,
                  middle = first ? left.begin + count : left.end - count;
    const WorkStealingRange::Iterations front{left.begin, middle}, back{middle, left.end};
    if (rest.compare_exchange_weak(word, word_of(first ? back : front), std::memory_order_relaxed))
      return first ? front : back;
  }
  return {};
}

}  // namespace

void WorkStealingRange::share_out(int64_t iterations, int64_t threads) {
  CHECK(iterations <= kMostIterations, "{} iterations are shared out", iterations);
  if (static_cast<int64_t>(shares_.size()) < threads)
    shares_ = std::vector<Share>(static_cast<size_t>(threads));
  threads_ = threads;
  for (int64_t thread = 0; thread < threads; ++thread)
    shares_[static_cast<size_t>(thread)].rest.store(
        word_of({iterations * thread / threads, iterations * (thread + 1) / threads}),
        std::memory_order_relaxed);
}

WorkStealingRange::Iterations WorkStealingRange::take(int64_t thread) {
  for (int64_t i = 0; i < threads_; ++i)
    if (const Iterations iterations =
            take_half(shares_[static_cast<size_t>((thread + i) % threads_)].rest, i == 0);
        !iterations.empty())
      return iterations;
  return {};
}

}  // namespace tenon::runtime
