// prefetch_rows.h — rows that come from memory, fetched while those before them are worked on.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// Lets the last of several passes over a row prefetch what all of them read of the next one. While results
// are written past the caches, nothing would be read otherwise: processors see the next row coming no sooner
// than its first pass begins. `definitions` are what the row computes from `inputs`, and share axes up to
// that of the rows.
void prefetch_next_row(std::vector<loops::Statement>& row, const std::vector<loops::Definition>& definitions,
                       size_t shared, const std::vector<loops::Buffer>& inputs, const Target& target);

}  // namespace tenon::schedule
