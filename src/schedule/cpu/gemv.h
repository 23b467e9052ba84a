// gemv.h — GEMV: one row of a product, as in each step of a decoder. It streams its operand once, so several
// accumulators hide the latency of additions.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// The definition has one axis, which is vectorised, and one reduced axis, whose terms go round-robin to
// several accumulators. Nothing where the shape does not pay.
std::optional<std::vector<loops::Statement>> build_gemv(const loops::Definition& row, const Target& target);

}  // namespace tenon::schedule
