// prefetch_b.h — prefetches the next panel of weights while the current one is multiplied.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// How panels are read: sequentially, each by several row blocks.
struct PackedBReads {
  loops::Place here, next;  // what an iteration reads of a panel, and the start of the next one
  std::string summed;       // the variable of the reduction
  std::string lane;         // the variable of the lanes
  int64_t lanes = 1;
  int64_t line = 16;                  // elements of a cache line
  Dim iteration = 0, iterations = 1;  // the number of the iteration, and how many there are
  Dim pass = 0, passes = 1;           // the number of the block that reads the panel, and how many do
};

// The prefetches of an iteration of the sum.
std::vector<loops::Statement> prefetch_b(const PackedBReads& reads);

}  // namespace tenon::schedule
