// gemv.h — GEMV: one row of a product, as in each step of a decoder. It streams its operand once, so several
// accumulators hide the latency of additions.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

struct GemvTile {
  int64_t nr, accumulators;
};
// Nothing where the shape does not pay.
std::optional<GemvTile> choose_gemv_tile(const loops::Definition& row, const Target& target);

// The definition has one axis, which is vectorised, and one reduced axis, whose terms go round-robin to
// several accumulators.
std::vector<loops::Statement> build_gemv(const loops::Definition& row, const GemvTile& tile);

}  // namespace tenon::schedule
