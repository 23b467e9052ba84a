// blocked_sum.h — the loops of a reduction. Rounding errors grow with the length of a sequential sum, so long
// sums are sums of partial ones.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// A part of a sum: this many iterations of a reduced axis, and all of those within it.
struct Parts {
  size_t axis;
  int64_t iterations;
};

// Nothing where no partial sums are needed. So many iterations of the last reduced axis are accumulated in
// parallel lanes.
std::optional<Parts> parts_of(const loops::Definition& definition, int64_t lanes = 1);

// The loops over reduced axes around `terms`, the last with a mark; where there are parts, with these
// statements before and after those of each part.
std::vector<loops::Statement> reduce_over(const std::vector<loops::Axis>& axes, loops::Mark last,
                                          const std::optional<Parts>& parts,
                                          std::vector<loops::Statement> before,
                                          std::vector<loops::Statement> terms,
                                          std::vector<loops::Statement> after);

}  // namespace tenon::schedule
