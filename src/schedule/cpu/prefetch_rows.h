// prefetch_rows.h — prefetches the next row while the current one is processed.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// Lets the last of several passes over a row prefetch what all of them read of the next one: hardware
// prefetch starts only when its first pass begins, so memory reads would idle during non-temporal stores.
// `definitions` compute the row from `inputs`, and share axes up to that of the rows.
void prefetch_next_row(std::vector<loops::Statement>& row, const std::vector<loops::Definition>& definitions,
                       size_t shared, const std::vector<loops::Buffer>& inputs, const Target& target);

}  // namespace tenon::schedule
