// vnni_pack.h — packs several narrow factors of a product into one word of 32 bits, which is what dot-product
// instructions (VNNI, i8mm, AMX) read: four int8, or two bf16, consecutive along a reduced axis.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// Of sums in i32 of products u8 * i8 and, where they may be computed in bf16, sums in f32 of products
// bf16 * bf16: constant weights change their layout (see KernelBuffer::vnni_dim), and the other factor is
// read through an alias where its words are contiguous.
void vnni_pack(lowering::KernelGraph& graph, bool in_bf16);

}  // namespace tenon::schedule
