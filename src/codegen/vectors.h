// vectors.h — which loops are vectorised, and how.
#pragma once

#include "loops/kernel.h"
#include "target/target.h"

namespace tenon::codegen {

// Whether the loop can be vectorised: each iteration writes a place of its own, or they reduce into one place
// in any order.
bool can_vectorise(const loops::Loop& loop, const loops::Kernel& kernel, const Target& target);

// The vectorisation factor: as many elements as fill the registers of a vector, at the widest dtype.
int64_t lanes_for(const loops::Loop& loop, const Target& target);

// The statements whose place is invariant across lanes.
std::vector<const loops::Assign*> find_folded(const loops::Loop& loop);

// Whether the target has masked loads and stores: of a dtype, or for all that the statements do.
bool can_mask(DType dtype, const Target& target);
bool can_mask(const std::vector<loops::Statement>& body, const Target& target);

}  // namespace tenon::codegen
