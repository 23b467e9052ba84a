// attention.h — fused attention with online softmax: each thread block has some queries of one head, and goes
// through its keys block by block.
//
//   q to shared memory
//   for each block of keys that may be seen:
//     k and v to shared memory
//     scores = q kᵀ, in registers; the greatest of each row, with that of the blocks before
//     weights = exp(scores - greatest), to shared memory; sums and totals are scaled to the new greatest
//     sums += weights v, in registers
//   sums / totals, and what else becomes of them, to memory
#pragma once

#include "fusion/attention_tile.h"
#include "loops/kernel.h"
#include "lowering/kernel_graph.h"

namespace tenon::schedule::cuda {

// The body of the kernel. The stages are as fusion found them (fusion/fused_attention.h), with an epilogue;
// they share the first `rows` axes.
void fuse_attention(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages, size_t rows,
                    const std::set<std::string>& outputs, const Gpu& gpu);
// In tiles of this size.
void fuse_attention(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages, size_t rows,
                    const std::set<std::string>& outputs, const fusion::AttentionTile& tile);

}  // namespace tenon::schedule::cuda
