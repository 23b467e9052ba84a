// split_products.h — products with too few tiles for all multiprocessors: how their sums are divided.
#pragma once

#include "loops/definition.h"
#include "rewrite/journal.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

// The sum over one reduced axis in so many parts of equal size, and the time that saves.
struct ProductSplit {
  size_t axis;
  int64_t parts;
  double nanoseconds_whole, nanoseconds_split;  // about
  int64_t blocks_whole, blocks_split;
};

// Nothing where one kernel is as fast. `buffers` are those that the factors read.
std::optional<ProductSplit> split_product(const loops::Definition& sum,
                                          const std::vector<loops::Buffer>& buffers, const Gpu& gpu,
                                          NumericsBudget numerics);

}  // namespace tenon::schedule::cuda
