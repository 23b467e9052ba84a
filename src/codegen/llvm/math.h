// math.h — functions of elements as inlined LLVM IR, lane by lane, for vectors of any width and for scalars.
//
// The code has no branches and calls nothing, but for sin, cos and tan: where some lane is beyond ±2^22,
// these branch to a block that calls the double function of the C library (sin, cos, tan) for each lane, so
// the builder may stand in another block afterwards. Special values (NaN, infinities, signed zeros,
// subnormals, overflow) give what the C library gives.
//
// Bounds in units in the last place of the result, with and without fused multiply-add. They hold for all
// arguments:
//
//            f32  f64               f32  f64               f32  f64
//   exp        2    2      asin       2    2      asinh      2    2
//   log        1    1      acos       2    2      acosh      3    3
//   sin        2    2      atan       2    2      atanh      3    3
//   cos        2    2      sinh       2    2      erf        2    3
//   tan        4    4      cosh       2    2      power      1    2
//                          tanh       2    2
//
// sqrt, floor, ceil, round and abs are intrinsics of LLVM, correctly rounded. Without SSE4.1 on x86-64, LLVM
// calls the C library for floor, ceil and round, and for the floor in power.
#pragma once

#include <span>

#include "loops/scalar.h"

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace tenon::codegen {

struct MathOptions {
  bool fused_multiply_add;        // whether the machine has an instruction for it
  bool scales_registers = false;  // and one for x · 2^n in 16 lanes (AVX-512)
};

// The operands are floats or doubles, or vectors of these, of one type; so is the result. The fast-math flags
// of the builder are left out of account.
llvm::Value* emit_math(llvm::IRBuilderBase& builder, loops::Function function,
                       std::span<llvm::Value* const> operands, MathOptions options);

}  // namespace tenon::codegen
