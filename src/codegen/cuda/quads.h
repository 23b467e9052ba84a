// quads.h — shared buffers that need no shared memory, as what is in them stays within quads: four threads
// beside each other, which have the same rows of products (tile_products.h).
//
//   for p in 0..128 thread { for h in 0..2 unrolled {              float own[2];
//     own[row(p,h),mod(p,4)] = … } }                          =>   own[h] = …;
//   for p in 0..128 thread { for h in 0..2 unrolled {
//     … own[row(p,h),3] … } }                                      … __shfl_sync(0xffffffff, own[h], 3, 4) …
//
// The first factor of products lies in registers as instructions want it there (fragments), where the threads
// that write its elements are those that have them.
#pragma once

#include <map>
#include <set>

#include "loops/parallel_regions.h"

namespace tenon::codegen::cuda {

constexpr int64_t kThreadsOfQuad = 4;

struct QuadBuffer {
  // The loops of a thread's rows, the innermost last, and how many iterations these have.
  std::vector<std::pair<std::string, int64_t>> rows;
  // Of fragments: the loops over fragments of 8 columns, and over the two of a thread in each.
  std::string fragment, of_two;
  int64_t fragments = 0;
  std::set<const loops::Loop*> products;  // that read them, over k

  bool is_factor() const { return fragments > 0; }
};

// By their names, of the shared buffers of a region whose thread blocks have so many threads.
std::map<std::string, QuadBuffer> find_quad_buffers(const loops::ParallelRegion& region, int64_t threads);

}  // namespace tenon::codegen::cuda
