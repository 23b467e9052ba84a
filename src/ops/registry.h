// registry.h — every op there is. Adding an op to a family needs nothing here; adding a family needs one
// line.
#pragma once

#include <vector>

#include "ir/op.h"

namespace tenon {

using Family = std::vector<OpDef>;

// Makes all ops known to find_op. Call once, before any graph is made; calling it again does nothing.
void register_ops();

}  // namespace tenon
