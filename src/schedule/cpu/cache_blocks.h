// cache_blocks.h — into how many parts the rows of a sum of products are cut, and its iterations.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::schedule {

// In how many parts `rows` are to meet one panel after the other, such that threads have about as much to do,
// and that what each part reads, of these bytes in all, stays in cache.
int64_t count_parts(const Dim& panels, const Dim& rows, int64_t bytes, const Target& target);

// Sums of products with panels, of which so many iterations are added up at once, for all rows and so many
// panels.
struct LongSums {
  int64_t iterations, panels;
};
struct ProductSizes {
  int64_t iterations, rows, panels;
  int64_t bytes_of_row, bytes_of_panel;  // that a iteration reads
};
// Nothing where what all rows and a panel have stays in cache until the next panel needs the rows.
std::optional<LongSums> choose_long_sums(const ProductSizes& sizes, const Target& target);

// Of all that a formula of the sum reads; 0 where only running tells.
int64_t bytes_read(const loops::Scalar& value, const loops::Definition& sum);
// Of all that these read, though several read the same buffer.
int64_t bytes_read_once(const std::vector<loops::Scalar>& values, const loops::Definition& sum);

}  // namespace tenon::schedule
