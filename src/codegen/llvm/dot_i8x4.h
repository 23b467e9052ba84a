// dot_i8x4.h — dot products of four int8 (VNNI, i8mm).
#pragma once

#include "codegen/llvm/elements.h"
#include "target/target.h"

namespace tenon::codegen {

// Integers of 32 bits, or vectors of them: `sums`, and added to them the products of the four bytes of a,
// which have no sign, with those of b, which do.
llvm::Value* emit_dot_bytes(Builder& builder, llvm::Value* sums, llvm::Value* a, llvm::Value* b,
                            const Target& target);

// The lowest bytes of four such integers, or vectors of them, packed into one.
llvm::Value* emit_join_bytes(Builder& builder, std::span<llvm::Value* const> words);

}  // namespace tenon::codegen
