// work_stealing_range.h — the iterations of a kernel, shared out among threads that may be of different
// speed, as where a core is lent to somebody else or is a slow one to begin with.
//
// Each thread has a run of neighbouring iterations, so that it finds in its cache what it left there. It
// takes them from the front, half of what is left at a time; one that is through with its own takes half of
// what is left of another's, from the end.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "target/target.h"

namespace tenon::runtime {

class WorkStealingRange {
 public:
  // More iterations than this are not counted here.
  static constexpr int64_t kMostIterations = int64_t{1} << 31;

  struct Iterations {
    int64_t begin = 0, end = 0;

    bool empty() const { return begin == end; }
  };

  // Shares out iterations 0 to `iterations` - 1, while no thread takes any.
  void share_out(int64_t iterations, int64_t threads);

  // What the thread is to run next; empty when no iteration is left. May be called by all threads at once.
  Iterations take(int64_t thread);

 private:
  // On a cache line of its own, for its thread reads it often, and others seldom.
  struct alignas(kCacheLine) Share {
    std::atomic<uint64_t> rest = 0;  // the first iteration, and in the upper half the one after the last
  };

  std::vector<Share> shares_;  // of more threads, perhaps, than take part
  int64_t threads_ = 0;
};

}  // namespace tenon::runtime
