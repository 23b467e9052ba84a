#include "codegen/llvm/dot_i8x4.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <bit>

#include "codegen/llvm/lane_parts.h"

namespace tenon::codegen {
namespace {

constexpr int kBytes = 4, kBits = 8;

// An instruction for so many sums at once.
struct Instruction {
  llvm::Intrinsic::ID intrinsic;
  int64_t lanes;
};

std::optional<Instruction> instruction_of(const Target& target, int64_t lanes) {
  const bool wide = target.has("+avx512vnni"),
             narrow = target.has("+avxvnni") || (wide && target.has("+avx512vl"));
  for (const auto& [possible, instruction] :
       {std::pair{wide, Instruction{llvm::Intrinsic::x86_avx512_vpdpbusd_512, 16}},
        std::pair{narrow, Instruction{llvm::Intrinsic::x86_avx512_vpdpbusd_256, 8}},
        std::pair{narrow, Instruction{llvm::Intrinsic::x86_avx512_vpdpbusd_128, 4}},
        std::pair{target.has("+i8mm"), Instruction{llvm::Intrinsic::aarch64_neon_usdot, 4}}})
    if (possible && lanes % instruction.lanes == 0)
      return instruction;
  return std::nullopt;
}

llvm::Value* call(Builder& builder, const Instruction& instruction, llvm::Value* sums, llvm::Value* a,
                  llvm::Value* b) {
  if (instruction.intrinsic != llvm::Intrinsic::aarch64_neon_usdot)
    return builder.CreateIntrinsic(instruction.intrinsic, {}, {sums, a, b});
  llvm::Type* bytes =
      llvm::FixedVectorType::get(builder.getInt8Ty(), static_cast<unsigned>(kBytes * instruction.lanes));
  return builder.CreateIntrinsic(instruction.intrinsic, {sums->getType(), bytes},
                                 {sums, builder.CreateBitCast(a, bytes), builder.CreateBitCast(b, bytes)});
}

// x86 without VNNI: the instruction that adds products of pairs of 16-bit integers, for so many sums at once.
std::optional<Instruction> pairs_of_words_instruction(const Target& target, int64_t lanes) {
  const bool is_x86 = target.architecture == Architecture::X86_64;
  for (const auto& [possible, instruction] :
       {std::pair{target.has("+avx512bw"), Instruction{llvm::Intrinsic::x86_avx512_pmaddw_d_512, 16}},
        std::pair{target.has("+avx2"), Instruction{llvm::Intrinsic::x86_avx2_pmadd_wd, 8}},
        std::pair{is_x86, Instruction{llvm::Intrinsic::x86_sse2_pmadd_wd, 4}}})
    if (possible && lanes % instruction.lanes == 0)
      return instruction;
  return std::nullopt;
}

// Bytes at even places, and those at odd ones, as pairs of 16-bit integers.
llvm::Value* add_pairs_of_words(Builder& builder, const Instruction& instruction, llvm::Value* sums,
                                llvm::Value* a, llvm::Value* b) {
  llvm::Type* words =
      llvm::FixedVectorType::get(builder.getInt16Ty(), static_cast<unsigned>(2 * instruction.lanes));
  a = builder.CreateBitCast(a, words);
  b = builder.CreateBitCast(b, words);
  const auto products = [&](llvm::Value* x, llvm::Value* y) {
    return builder.CreateIntrinsic(instruction.intrinsic, {}, {x, y});
  };
  llvm::Value* even = products(builder.CreateAnd(a, llvm::ConstantInt::get(words, 0xff)),
                               builder.CreateAShr(builder.CreateShl(b, kBits), kBits));
  llvm::Value* odd = products(builder.CreateLShr(a, kBits), builder.CreateAShr(b, kBits));
  return builder.CreateAdd(sums, builder.CreateAdd(even, odd));
}

// Without such instructions: byte by byte.
llvm::Value* quantized_matmul(Builder& builder, llvm::Value* sums, llvm::Value* a, llvm::Value* b) {
  for (int i = 0; i < kBytes; ++i) {
    llvm::Value* unsigned_byte = builder.CreateAnd(builder.CreateLShr(a, static_cast<uint64_t>(kBits * i)),
                                                   llvm::ConstantInt::get(a->getType(), 0xff));
    llvm::Value* signed_byte =
        builder.CreateAShr(builder.CreateShl(b, static_cast<uint64_t>(kBits * (kBytes - 1 - i))),
                           static_cast<uint64_t>(kBits * (kBytes - 1)));
    sums = builder.CreateAdd(sums, builder.CreateMul(unsigned_byte, signed_byte));
  }
  return sums;
}

}  // namespace

llvm::Value* emit_dot_bytes(Builder& builder, llvm::Value* sums, llvm::Value* a, llvm::Value* b,
                            const Target& target) {
  const int64_t lanes = count_lanes(sums);
  const std::optional<Instruction> dot = instruction_of(target, lanes);
  const std::optional<Instruction> instruction = dot ? dot : pairs_of_words_instruction(target, lanes);
  if (!instruction || !std::has_single_bit(static_cast<uint64_t>(lanes)))
    return quantized_matmul(builder, sums, a, b);
  return in_parts(
      builder, {sums, a, b}, lanes, instruction->lanes, [&](const std::vector<llvm::Value*>& part) {
        return (dot ? call : add_pairs_of_words)(builder, *instruction, part[0], part[1], part[2]);
      });
}

llvm::Value* emit_join_bytes(Builder& builder, std::span<llvm::Value* const> words) {
  llvm::Value* joined = nullptr;
  for (size_t i = 0; i < words.size(); ++i) {
    llvm::Value* byte = builder.CreateAnd(words[i], llvm::ConstantInt::get(words[i]->getType(), 0xff));
    byte = builder.CreateShl(byte, kBits * i);
    joined = joined == nullptr ? byte : builder.CreateOr(joined, byte);
  }
  return joined;
}

}  // namespace tenon::codegen
