#include "codegen/llvm/dot_bf16x2.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>

#include "codegen/llvm/lane_parts.h"

namespace tenon::codegen {
namespace {

constexpr uint64_t kBits = 16;  // of a bf16, which is the upper half of an f32

// An instruction for so many sums at once.
struct Instruction {
  llvm::Intrinsic::ID intrinsic;
  int64_t lanes;
};

std::optional<Instruction> instruction_of(const Target& target, int64_t lanes) {
  const auto has = [&](std::string_view feature) {
    return std::ranges::find(target.features, feature) != target.features.end();
  };
  const bool wide = has("+avx512bf16"), narrow = wide && has("+avx512vl");
  for (const auto& [possible, instruction] :
       {std::pair{wide, Instruction{llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, 16}},
        std::pair{narrow, Instruction{llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256, 8}},
        std::pair{narrow, Instruction{llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128, 4}},
        std::pair{has("+bf16"), Instruction{llvm::Intrinsic::aarch64_neon_bfdot, 4}}})
    if (possible && lanes % instruction.lanes == 0)
      return instruction;
  return std::nullopt;
}

llvm::Value* call(Builder& builder, const Instruction& instruction, llvm::Value* sums, llvm::Value* a,
                  llvm::Value* b) {
  llvm::Type* numbers =
      llvm::FixedVectorType::get(builder.getBFloatTy(), static_cast<unsigned>(2 * instruction.lanes));
  std::vector<llvm::Type*> types;
  if (instruction.intrinsic == llvm::Intrinsic::aarch64_neon_bfdot)
    types = {sums->getType(), numbers};
  return builder.CreateIntrinsic(
      instruction.intrinsic, types,
      {sums, builder.CreateBitCast(a, numbers), builder.CreateBitCast(b, numbers)});
}

// Without the instruction: one half, then the other.
llvm::Value* multiply_halves(Builder& builder, llvm::Value* sums, llvm::Value* a, llvm::Value* b,
                             const Target& target) {
  llvm::Type* type = sums->getType();
  const auto low = [&](llvm::Value* word) {
    return builder.CreateBitCast(builder.CreateShl(word, kBits), type);
  };
  const auto high = [&](llvm::Value* word) {
    return builder.CreateBitCast(builder.CreateAnd(word, llvm::ConstantInt::get(word->getType(), 0xffff0000)),
                                 type);
  };
  const auto add = [&](llvm::Value* to, llvm::Value* x, llvm::Value* y) -> llvm::Value* {
    return target.fused_multiply_add ? builder.CreateIntrinsic(type, llvm::Intrinsic::fma, {x, y, to})
                                     : builder.CreateFAdd(to, builder.CreateFMul(x, y));
  };
  return add(add(sums, low(a), low(b)), high(a), high(b));
}

llvm::Value* bits_of(Builder& builder, llvm::Value* number) {
  llvm::Type* type = builder.getInt32Ty();
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(number->getType()))
    type = llvm::FixedVectorType::get(type, vector->getNumElements());
  return builder.CreateBitCast(number, type);
}

}  // namespace

llvm::Value* emit_dot_pairs(Builder& builder, llvm::Value* sums, llvm::Value* a, llvm::Value* b,
                            const Target& target) {
  const int64_t lanes = count_lanes(sums);
  const std::optional<Instruction> instruction = instruction_of(target, lanes);
  if (!instruction || !std::has_single_bit(static_cast<uint64_t>(lanes)))
    return multiply_halves(builder, sums, a, b, target);
  return in_parts(builder, {sums, a, b}, lanes, instruction->lanes,
                  [&](const std::vector<llvm::Value*>& part) {
                    return call(builder, *instruction, part[0], part[1], part[2]);
                  });
}

llvm::Value* emit_join_pairs(Builder& builder, llvm::Value* low, llvm::Value* high) {
  return builder.CreateOr(builder.CreateLShr(bits_of(builder, low), kBits), bits_of(builder, high));
}

llvm::Value* emit_top_half(Builder& builder, llvm::Value* number) {
  llvm::Value* bits = bits_of(builder, number);
  return builder.CreateBitCast(builder.CreateAnd(bits, llvm::ConstantInt::get(bits->getType(), 0xffff0000)),
                               number->getType());
}

}  // namespace tenon::codegen
