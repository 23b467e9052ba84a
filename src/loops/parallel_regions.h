// parallel_regions.h — the parts of a kernel that run one after the other: iterations of the loop that a
// region consists of may run at once.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

struct ParallelRegion {
  std::vector<loops::Loop> parallel;  // perfectly nested, the outermost first, without their bodies
  std::vector<loops::Statement> body;
  Dim iterations = 1;  // of the loops together
};

// Whether there is code for elements of this dtype.
bool has_code(DType dtype);

std::vector<ParallelRegion> parallel_regions_of(const loops::Kernel& kernel);

// The bytes of scratch memory that each thread needs.
Dim scratch_bytes(const ParallelRegion& region);

// How many iterations a loop has.
Dim iterations_of(const loops::Loop& loop);

// Whether a local buffer lies on the stack rather than in scratch memory.
bool lies_on_stack(const loops::Buffer& buffer);
// In bytes, rounded up to whole cache lines.
Dim padded_bytes(const loops::Buffer& buffer);

}  // namespace tenon::loops
