#include "runtime/turn_shares.h"

#include "base/error.h"

namespace tenon {

namespace {

uint64_t word_of(const TurnShares::Turns& turns) {
  return static_cast<uint64_t>(turns.begin) | static_cast<uint64_t>(turns.end) << 32;
}

TurnShares::Turns turns_of(uint64_t word) {
  return {static_cast<int64_t>(word & 0xffffffff), static_cast<int64_t>(word >> 32)};
}

// Takes the first half of what is left, or the last; the larger one where halves differ.
TurnShares::Turns take_half(std::atomic<uint64_t>& rest, bool first) {
  uint64_t word = rest.load(std::memory_order_relaxed);
  for (TurnShares::Turns left = turns_of(word); !left.empty(); left = turns_of(word)) {
    const int64_t count = (left.end - left.begin + 1) / 2,
                  middle = first ? left.begin + count : left.end - count;
    const TurnShares::Turns front{left.begin, middle}, back{middle, left.end};
    if (rest.compare_exchange_weak(word, word_of(first ? back : front), std::memory_order_relaxed))
      return first ? front : back;
  }
  return {};
}

}  // namespace

void TurnShares::share_out(int64_t turns, int64_t threads) {
  CHECK(turns <= kMostTurns, "{} turns are shared out", turns);
  if (static_cast<int64_t>(shares_.size()) < threads)
    shares_ = std::vector<Share>(static_cast<size_t>(threads));
  threads_ = threads;
  for (int64_t thread = 0; thread < threads; ++thread)
    shares_[static_cast<size_t>(thread)].rest.store(
        word_of({turns * thread / threads, turns * (thread + 1) / threads}), std::memory_order_relaxed);
}

TurnShares::Turns TurnShares::take(int64_t thread) {
  for (int64_t i = 0; i < threads_; ++i)
    if (const Turns turns = take_half(shares_[static_cast<size_t>((thread + i) % threads_)].rest, i == 0);
        !turns.empty())
      return turns;
  return {};
}

}  // namespace tenon
