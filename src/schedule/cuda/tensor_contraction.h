// tensor_contraction.h — contractions by tiles of the result that tensor cores compute.
//
// As in tiled_contraction.h, a thread block goes through k in steps. Operands that lie in memory as they are
// multiplied are copied to shared memory several steps ahead; all others go through registers, where they are
// computed, padded and converted:
//
//   for each step pipelined 3 { copy a; b = next b; next b = that of the step after; sums += a * b }
//
// f32 is multiplied in three parts of bf16, whose sum it is (bf16x6). Of the nine products of parts, three
// are below the rounding of f32. The sums of the other six, small ones first, are added up in f32 registers
// after each step: tensor cores round sums towards zero.
#pragma once

#include <set>

#include "loops/kernel.h"
#include "lowering/contraction_plan.h"
#include "schedule/cuda/contraction_tiles.h"

namespace tenon::schedule::cuda {

// The 16-bit dtype of elements that are multiplied as they are; nothing where the factors have none in
// common.
std::optional<DType> tensor_dtype(const MatrixProduct& product);

// A factor of such elements, without the conversion to the dtype of sums.
TiledFactor without_cast(TiledFactor factor);

// The loops over thread blocks, for the definition that is the product and for its epilogue.
loops::Statement tensor_contraction(const std::vector<loops::Definition>& definitions,
                                    const std::set<std::string>& outputs, const MatrixProduct& product,
                                    const lowering::BlockTile& tile, const loops::Kernel& kernel);

}  // namespace tenon::schedule::cuda
