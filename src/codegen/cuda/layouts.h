// layouts.h — which thread of a block runs which iterations of its thread loops, and so holds which elements
// of private buffers.
//
// Threads take vectors of consecutive iterations in turn: of 256 threads with vectors of 4, thread t has 4*t
// to 4*t+3, then 1024+4*t on. A private buffer that thread loops index by their variable is spread over the
// threads: who runs iteration i holds element i. All loops over such a buffer have the same vectors.
#pragma once

#include <map>
#include <set>

#include "codegen/cuda/pipelines.h"

namespace tenon::codegen::cuda {

constexpr int64_t kVectorBytes = 16;  // that one instruction loads

// How the elements of a private buffer lie in the registers of threads.
struct Spread {
  int64_t iterations = 0;  // its first size
  int64_t vector = 1;
  int64_t held = 0;  // of these iterations by each thread
};

class Layouts {
 public:
  // What cannot be spread is unsupported. Where a thread has no more than its own part of shared buffers, as
  // in a cluster, they are spread as private ones are.
  Layouts(const loops::Kernel& kernel, const PipelinedRegion& region, int64_t threads, bool spreads_shared);

  // How many consecutive iterations of a thread loop one thread has.
  int64_t vector_of(const loops::Loop& loop) const { return vectors_.at(&loop); }
  // Whether private buffers are spread over its iterations.
  bool spreads(const loops::Loop& loop) const { return spread_over_.contains(&loop); }
  // How many a thread holds in registers: of all private buffers that are spread, and of the largest of them.
  int64_t elements_held() const;
  int64_t most_elements_held() const;
  // Null where every thread has all of the buffer.
  const Spread* find_spread(const loops::Local& local) const;

 private:
  friend class LayoutBuilder;
  static int64_t elements_held(const loops::Local& local, const Spread& spread);

  std::map<const loops::Loop*, int64_t> vectors_;
  std::map<const loops::Local*, Spread> spreads_;
  std::set<const loops::Loop*> spread_over_;
};

}  // namespace tenon::codegen::cuda
