// gemv.h — the loops of one row of a product, as each step of a decoder has: what it reads is read
// once, from end to end, so that it must not wait for one sum before it adds to the next.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// The definition has one axis, in the lanes of vectors, and one that is reduced: its terms are added up in
// iterations, in registers of their own. Nothing where the shape is not such that this pays.
std::optional<std::vector<loops::Statement>> build_gemv(const loops::Definition& row, const Target& target);

}  // namespace tenon::schedule
