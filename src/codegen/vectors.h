// vectors.h — which loops run in the lanes of vectors, and how.
#pragma once

#include "loops/kernel.h"
#include "target/target.h"

namespace tenon::codegen {

// Whether iterations of the loop can run in lanes, and fill some: each writes a place of its own, or they
// combine what may come in any order in one place that stands still.
bool can_vectorise(const loops::Loop& loop, const loops::Kernel& kernel, const Target& target);

// How many iterations run at once: as many elements as fill the registers of a vector, at the widest dtype.
int64_t lanes_for(const loops::Loop& loop, const Target& target);

// The statements whose place stands still while the lanes move.
std::vector<const loops::Assign*> find_folded(const loops::Loop& loop);

// Whether the machine can leave out lanes of what is read and written: elements of a dtype, or all that the
// statements do.
bool can_mask(DType dtype, const Target& target);
bool can_mask(const std::vector<loops::Statement>& body, const Target& target);

}  // namespace tenon::codegen
