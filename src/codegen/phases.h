// phases.h — the parts of a kernel that run one after the other: turns of the loop that a phase consists of
// may run at once.
#pragma once

#include "loops/kernel.h"

namespace tenon::codegen {

struct Phase {
  std::vector<loops::Loop> parallel;  // perfectly nested, the outermost first, without their bodies
  std::vector<loops::Statement> body;
  Dim turns = 1;  // of the loops together
};

// Whether there is code for elements of this dtype.
bool has_code(DType dtype);

std::vector<Phase> phases_of(const loops::Kernel& kernel);

// The bytes of scratch memory that each thread needs.
Dim scratch_bytes(const Phase& phase);

// How many turns a loop has.
Dim turns_of(const loops::Loop& loop);

// Whether a local buffer lies on the stack rather than in scratch memory.
bool lies_on_stack(const loops::Buffer& buffer);
// In bytes, rounded up to whole cache lines.
Dim padded_bytes(const loops::Buffer& buffer);

}  // namespace tenon::codegen
