// blocks.h — loops over thread blocks and threads.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// Names of loop variables and buffers end in a digit here, as those of sizes do not: see copy_for_loops.

// Several axes counted by one variable, the last fastest.
struct FlatAxes {
  Dim size = 1;
  std::map<std::string, Dim> variables;  // each axis in terms of the one
};
FlatAxes flatten(const std::vector<loops::Axis>& axes, const std::string& variable);

std::vector<loops::Statement> substitute(const std::vector<loops::Statement>& body,
                                         const std::map<std::string, Dim>& variables);

// One loop over so many iterations, of which each thread block takes a chunk.
loops::Statement in_chunks(const std::string& variable, const Dim& size, int64_t chunk, int64_t threads,
                           std::vector<loops::Statement> body);

// A thread block of so many threads for each point of the axes; one in all where there are none.
loops::Statement over_blocks(const std::vector<loops::Axis>& axes, int64_t threads,
                             std::vector<loops::Statement> body);

loops::Statement over_threads(const std::string& variable, const Dim& size,
                              std::vector<loops::Statement> body);

// The loops within a thread are serial, but for those that are unrolled.
void serialise(std::vector<loops::Statement>& body);

}  // namespace tenon::schedule
