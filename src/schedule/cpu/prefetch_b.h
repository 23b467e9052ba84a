// prefetch_b.h — weights that come from memory, fetched while those before them are multiplied.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// How panels are read: one after the other, each by several blocks of rows in turn.
struct PackedBReads {
  loops::Place here, next;  // what a iteration of the sum reads of a panel, and the start of the next one
  std::string summed;       // the variable along which iterations follow each other
  std::string lane;         // and that along which lanes are read
  int64_t lanes = 1;
  int64_t line = 16;                  // elements that are fetched with one
  Dim iteration = 0, iterations = 1;  // the number of the iteration, and how many there are
  Dim pass = 0, passes = 1;           // the number of the block that reads the panel, and how many do
};

// What is fetched in a iteration of the sum.
std::vector<loops::Statement> prefetch_b(const PackedBReads& reads);

}  // namespace tenon::schedule
