// dot_bf16x2.h — dot products of bf16 pairs (VDPBF16PS and its like).
#pragma once

#include "codegen/llvm/elements.h"
#include "target/target.h"

namespace tenon::codegen {

// f32, or vectors of them: `sums`, and added to them the products of the two bf16 in each word of a with
// those in the word of b. Denormal numbers may count as 0.
llvm::Value* emit_dot_pairs(Builder& builder, llvm::Value* sums, llvm::Value* a, llvm::Value* b,
                            const Target& target);

// Words of two bf16, which registers hold as f32.
llvm::Value* emit_join_pairs(Builder& builder, llvm::Value* low, llvm::Value* high);

// The bf16 that the first half of an f32 is, as f32.
llvm::Value* emit_top_half(Builder& builder, llvm::Value* number);

}  // namespace tenon::codegen
