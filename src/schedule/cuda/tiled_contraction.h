// tiled_contraction.h — contractions of two factors (matmul, convolution as an implicit one) by tiles of the
// result.
//
// Each thread block has one tile. It goes through k in steps: a tile of each factor is copied to shared
// memory, where every element is read by many threads, and each thread adds the products to a small tile of
// sums in its registers. The elements of the next step are loaded to registers meanwhile:
//
//   next = tiles of step 0
//   for each step { shared = next; next = tiles of the step after; sums += products of shared }
//
// The factors are whatever the formula says, with the selects of padding and all.
#pragma once

#include <set>

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

// Gives the kernel its body: that of the first stage and its pointwise epilogue, as its plan says; without
// one, f32 is multiplied whole. False where tiles do not fit the contraction; then the kernel stays as it is.
bool tile_contraction(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages,
                      const std::set<std::string>& outputs, const Gpu& gpu);

}  // namespace tenon::schedule::cuda
