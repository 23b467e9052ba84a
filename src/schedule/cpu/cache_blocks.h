// cache_blocks.h — cache blocking of contractions: how rows and reduction iterations are split.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// Into how many parts `rows` are split, each of which iterates over all panels, so that threads are balanced
// and what a part reads, of these bytes in all, stays in cache.
int64_t count_parts(const Dim& panels, const Dim& rows, int64_t bytes, const Target& target);

// Blocking of the reduction: so many iterations at a time, for all rows and so many panels.
struct LongSums {
  int64_t iterations, panels;
};
struct ProductSizes {
  int64_t iterations, rows, panels;
  int64_t bytes_of_row, bytes_of_panel;  // per iteration
};
// Nothing where all rows and a panel stay in cache until the next panel needs the rows.
std::optional<LongSums> choose_long_sums(const ProductSizes& sizes, const Target& target);

// Of all that an expression of the sum reads; 0 where that is dynamic.
int64_t bytes_read(const loops::Scalar& value, const loops::Definition& sum);
// Of all that these read; a shared buffer counts once.
int64_t bytes_read_once(const std::vector<loops::Scalar>& values, const loops::Definition& sum);

}  // namespace tenon::schedule
