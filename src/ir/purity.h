// purity.h — whether an op may be computed ahead of a run, once for several nodes, or again.
#pragma once

#include "ir/op.h"

namespace tenon {

// Whether its results depend on operands and attributes alone, and are known to.
bool is_pure(const OpDef& op);

}  // namespace tenon
