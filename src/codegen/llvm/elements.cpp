#include "codegen/llvm/elements.h"

#include <llvm/IR/Intrinsics.h>

#include "base/error.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen {

using llvm::Intrinsic::ID;
using loops::Function;
namespace Intrinsic = llvm::Intrinsic;

namespace {

// Whether it is a constant, the same in each lane, and not NaN.
bool is_known_number(llvm::Value* value) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(value);
  if (constant != nullptr && constant->getType()->isVectorTy())
    constant = constant->getSplatValue();
  const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  return number != nullptr && !number->isNaN();
}

llvm::Type* with_lanes(llvm::Type* element, int64_t lanes) {
  return lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
}

bool is_narrow(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype, int64_t lanes) {
  CHECK(loops::has_code(dtype), "code for {}", dtype);
  if (dtype == DType::F64)
    return with_lanes(llvm::Type::getDoubleTy(context), lanes);
  if (is_float(dtype))
    return with_lanes(llvm::Type::getFloatTy(context), lanes);
  const int bits = dtype == DType::Bool ? 1 : 8 * info(dtype).bytes;
  return with_lanes(llvm::Type::getIntNTy(context, static_cast<unsigned>(bits)), lanes);
}

llvm::Type* stored_type(llvm::LLVMContext& context, DType dtype, int64_t lanes) {
  if (dtype == DType::F16)
    return with_lanes(llvm::Type::getHalfTy(context), lanes);
  if (dtype == DType::BF16)
    return with_lanes(llvm::Type::getInt16Ty(context), lanes);
  if (dtype == DType::Bool)
    return with_lanes(llvm::Type::getInt8Ty(context), lanes);
  return register_type(context, dtype, lanes);
}

llvm::Value* repeat(Builder& builder, llvm::Value* value, int64_t lanes) {
  return lanes == 1 || value->getType()->isVectorTy()
             ? value
             : builder.CreateVectorSplat(static_cast<unsigned>(lanes), value);
}

llvm::Type* ElementBuilder::type_like(llvm::Value* value, llvm::Type* element) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return with_lanes(element, vector != nullptr ? vector->getNumElements() : 1);
}

llvm::Value* ElementBuilder::constant_like(llvm::Value* value, int64_t number) {
  return llvm::ConstantInt::get(value->getType(), static_cast<uint64_t>(number), true);
}

llvm::Value* ElementBuilder::from_stored(DType dtype, llvm::Value* stored) {
  if (dtype == DType::F16)
    return builder_.CreateFPExt(stored, type_like(stored, builder_.getFloatTy()));
  if (dtype == DType::BF16) {
    llvm::Value* bits = builder_.CreateZExt(stored, type_like(stored, builder_.getInt32Ty()));
    return builder_.CreateBitCast(builder_.CreateShl(bits, 16), type_like(stored, builder_.getFloatTy()));
  }
  return dtype == DType::Bool ? builder_.CreateICmpNE(stored, constant_like(stored, 0)) : stored;
}

llvm::Value* ElementBuilder::to_stored(DType dtype, llvm::Value* value) {
  if (dtype == DType::F16)
    return builder_.CreateFPTrunc(value, type_like(value, builder_.getHalfTy()));
  if (dtype == DType::BF16) {
    llvm::Value* bits = builder_.CreateBitCast(value, type_like(value, builder_.getInt32Ty()));
    return builder_.CreateTrunc(builder_.CreateLShr(bits, 16), type_like(value, builder_.getInt16Ty()));
  }
  return dtype == DType::Bool ? builder_.CreateZExt(value, type_like(value, builder_.getInt8Ty())) : value;
}

llvm::Value* ElementBuilder::number(DType dtype, const loops::Number& value) {
  llvm::Type* type = register_type(builder_.getContext(), dtype, 1);
  if (dtype == DType::Bool)
    return builder_.getInt1(std::get<uint64_t>(value) != 0);
  if (is_float(dtype))
    return fit(dtype, llvm::ConstantFP::get(type, std::get<double>(value)));
  const uint64_t bits = std::visit([](auto v) { return static_cast<uint64_t>(v); }, value);
  return fit(dtype, llvm::ConstantInt::get(type, bits, is_signed(dtype)));
}

llvm::Value* ElementBuilder::neutral(Function function, DType dtype) {
  llvm::Type* type = register_type(builder_.getContext(), dtype, 1);
  const bool least = function == Function::Maximum;  // the least is neutral
  if (function == Function::Minimum || function == Function::Maximum) {
    if (is_float(dtype))
      return llvm::ConstantFP::getInfinity(type, least);
    const auto bits = static_cast<unsigned>(dtype == DType::Bool ? 1 : info(dtype).bits);
    const unsigned width = type->getIntegerBitWidth();
    const llvm::APInt end =
        is_signed(dtype)
            ? (least ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt::getSignedMaxValue(bits))
                  .sext(width)
            : (least ? llvm::APInt::getMinValue(bits) : llvm::APInt::getMaxValue(bits)).zext(width);
    return llvm::ConstantInt::get(type, end);
  }
  if (function == Function::And)
    return llvm::Constant::getAllOnesValue(type);
  if (is_float(dtype))
    return llvm::ConstantFP::get(type, function == Function::Multiply ? 1.0 : -0.0);
  return llvm::ConstantInt::get(type, function == Function::Multiply ? 1 : 0);
}

llvm::Value* ElementBuilder::round_to_bf16(llvm::Value* value) {
  llvm::Value* bits = builder_.CreateBitCast(value, type_like(value, builder_.getInt32Ty()));
  llvm::Value* odd = builder_.CreateAnd(builder_.CreateLShr(bits, 16), constant_like(bits, 1));
  llvm::Value* rounded = builder_.CreateAdd(bits, builder_.CreateAdd(odd, constant_like(bits, 0x7fff)));
  rounded = builder_.CreateAnd(rounded, constant_like(bits, static_cast<int32_t>(0xffff0000)));
  llvm::Value* nan =
      builder_.CreateOr(builder_.CreateAnd(bits, constant_like(bits, static_cast<int32_t>(0x80000000))),
                        constant_like(bits, 0x7fc00000));
  llvm::Value* result = builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), nan, rounded);
  return builder_.CreateBitCast(result, value->getType());
}

llvm::Value* ElementBuilder::shorten_safely(llvm::Value* value) {
  llvm::Value* shorter = builder_.CreateFPTrunc(value, type_like(value, builder_.getFloatTy()));
  llvm::Value* back = builder_.CreateFPExt(shorter, value->getType());
  llvm::Value* bits = builder_.CreateBitCast(shorter, type_like(value, builder_.getInt32Ty()));
  // Where it is not exact, the neighbour towards the double with an odd last bit: a float has bits to spare.
  llvm::Value* even =
      builder_.CreateICmpEQ(builder_.CreateAnd(bits, constant_like(bits, 1)), constant_like(bits, 0));
  llvm::Value* inexact = builder_.CreateFCmpONE(back, value);
  llvm::Value* below = builder_.CreateFCmpOLT(builder_.CreateUnaryIntrinsic(Intrinsic::fabs, back),
                                              builder_.CreateUnaryIntrinsic(Intrinsic::fabs, value));
  llvm::Value* step = builder_.CreateSelect(below, constant_like(bits, 1), constant_like(bits, -1));
  llvm::Value* finite = builder_.CreateFCmpONE(builder_.CreateUnaryIntrinsic(Intrinsic::fabs, shorter),
                                               llvm::ConstantFP::getInfinity(shorter->getType()));
  llvm::Value* moved = builder_.CreateSelect(builder_.CreateAnd(builder_.CreateAnd(even, inexact), finite),
                                             builder_.CreateAdd(bits, step), bits);
  return builder_.CreateBitCast(moved, shorter->getType());
}

llvm::Value* ElementBuilder::fit(DType dtype, llvm::Value* value) {
  if (dtype == DType::BF16)
    return round_to_bf16(value);
  if (dtype == DType::F16)
    return builder_.CreateFPExt(builder_.CreateFPTrunc(value, type_like(value, builder_.getHalfTy())),
                                value->getType());
  const int unused = is_integer(dtype) ? 8 * info(dtype).bytes - info(dtype).bits : 0;
  if (unused == 0)
    return value;
  llvm::Value* raised = builder_.CreateShl(value, constant_like(value, unused));
  return is_signed(dtype) ? builder_.CreateAShr(raised, constant_like(value, unused))
                          : builder_.CreateLShr(raised, constant_like(value, unused));
}

// NaN is 0; what is beyond 64 bits, the nearest of those; then the low bits. Negative numbers wrap around.
llvm::Value* ElementBuilder::whole_number(DType to, llvm::Value* value) {
  llvm::Type* wide = type_like(value, builder_.getInt64Ty());
  if (!is_unsigned(to))
    return builder_.CreateIntrinsic(wide, Intrinsic::fptosi_sat, {value});
  // What a signed number is too short for: without its highest bit, which comes back afterwards.
  llvm::Value* half = llvm::ConstantFP::get(value->getType(), 0x1p63);
  llvm::Value* upper = builder_.CreateFCmpOGE(value, half);
  llvm::Value* rest = builder_.CreateSelect(upper, builder_.CreateFSub(value, half), value);
  llvm::Value* whole = builder_.CreateIntrinsic(wide, Intrinsic::fptosi_sat, {rest});
  return builder_.CreateOr(whole, builder_.CreateShl(builder_.CreateZExt(upper, wide), 63));
}

llvm::Value* ElementBuilder::cast(DType from, DType to, llvm::Value* value) {
  llvm::Type* type = type_like(value, register_type(builder_.getContext(), to, 1));
  if (to == DType::Bool) {
    if (is_float(from))
      return builder_.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0));
    return builder_.CreateICmpNE(value, constant_like(value, 0));
  }
  if (is_float(from) && is_float(to)) {
    if (is_narrow(to) && from == DType::F64)
      return fit(to, shorten_safely(value));
    return fit(to, builder_.CreateFPCast(value, type));
  }
  if (is_float(to)) {
    if (is_narrow(to) && info(from).bits > 16)
      return cast(DType::F64, to, cast(from, DType::F64, value));
    return fit(to, is_signed(from) ? builder_.CreateSIToFP(value, type) : builder_.CreateUIToFP(value, type));
  }
  if (is_float(from))
    return fit(to, builder_.CreateTrunc(whole_number(to, value), type));
  return fit(to, is_signed(from) ? builder_.CreateSExtOrTrunc(value, type)
                                 : builder_.CreateZExtOrTrunc(value, type));
}

llvm::Value* ElementBuilder::cast_limited(DType to, llvm::Value* value, double least) {
  llvm::Type* type = type_like(value, register_type(builder_.getContext(), to, 1));
  llvm::Value *zero = llvm::Constant::getNullValue(value->getType()),
              *limit = llvm::ConstantFP::get(value->getType(), least);
  llvm::Value* limited = builder_.CreateSelect(builder_.CreateFCmpOGT(value, limit), value, limit);
  if (least != 0)  // else NaN is 0 by now
    limited = builder_.CreateSelect(builder_.CreateFCmpUNO(value, value), zero, limited);
  llvm::Value* whole = builder_.CreateFPToSI(limited, type_like(value, builder_.getInt32Ty()));
  return fit(to, builder_.CreateSExtOrTrunc(whole, type));
}

llvm::Value* ElementBuilder::compare(Function function, DType dtype, llvm::Value* a, llvm::Value* b) {
  using llvm::CmpInst;
  if (is_float(dtype))
    return builder_.CreateFCmp(function == Function::Equal  ? CmpInst::FCMP_OEQ
                               : function == Function::Less ? CmpInst::FCMP_OLT
                                                            : CmpInst::FCMP_OLE,
                               a, b);
  if (function == Function::Equal)
    return builder_.CreateICmpEQ(a, b);
  const bool less = function == Function::Less;
  return is_signed(dtype) ? builder_.CreateICmp(less ? CmpInst::ICMP_SLT : CmpInst::ICMP_SLE, a, b)
                          : builder_.CreateICmp(less ? CmpInst::ICMP_ULT : CmpInst::ICMP_ULE, a, b);
}

llvm::Value* ElementBuilder::apply(Function function, DType dtype, std::span<llvm::Value* const> operands) {
  if (loops::gives_bool(function))
    return compare(function, dtype, operands[0], operands[1]);
  if (function == Function::Select)
    return builder_.CreateSelect(operands[0], operands[1], operands[2]);
  return fit(dtype, is_float(dtype) ? of_floats(function, operands) : of_integers(function, dtype, operands));
}

// By the reciprocal, and then corrected by what is left: rounded as division rounds (P. Markstein,
// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990), unless what is left is
// too small for a float. What does not depend on the lanes is computed once, outside of the loop.
llvm::Value* ElementBuilder::divide_by_one(llvm::Value* vector, llvm::Value* number) {
  const auto lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  const auto constant = [&](double value) { return llvm::ConstantFP::get(number->getType(), value); };
  // Both are made larger where the reciprocal would be infinite.
  llvm::Value* tiny =
      builder_.CreateFCmpOLT(builder_.CreateUnaryIntrinsic(Intrinsic::fabs, number), constant(0x1p-100));
  llvm::Value* factor = builder_.CreateSelect(tiny, constant(0x1p64), constant(1));
  number = builder_.CreateFMul(number, factor);
  llvm::Value* reciprocal = repeat(builder_, builder_.CreateFDiv(constant(1), number), lanes);
  llvm::Value* divisor = repeat(builder_, builder_.CreateFNeg(number), lanes);
  vector = builder_.CreateFMul(vector, repeat(builder_, factor, lanes));
  llvm::Value* first = builder_.CreateFMul(vector, reciprocal);
  const auto multiply_add = [&](llvm::Value* a, llvm::Value* b, llvm::Value* c) {
    return builder_.CreateIntrinsic(c->getType(), Intrinsic::fma, {a, b, c});
  };
  llvm::Value* corrected = multiply_add(multiply_add(first, divisor, vector), reciprocal, first);
  // Of what is infinite nothing is left, and zeros keep their sign.
  llvm::Value* usual = builder_.CreateFCmpONE(corrected, llvm::Constant::getNullValue(first->getType()));
  return builder_.CreateSelect(usual, corrected, first);
}

llvm::Value* ElementBuilder::of_floats(Function function, std::span<llvm::Value* const> operands) {
  llvm::Value *a = operands[0], *b = operands.size() > 1 ? operands[1] : nullptr;
  const auto chosen = [&](llvm::CmpInst::Predicate first) {  // NaN where either is
    if (is_known_number(b))  // one comparison tells of a, which also holds where it is NaN
      return builder_.CreateSelect(builder_.CreateFCmp(llvm::CmpInst::getUnorderedPredicate(first), a, b), a,
                                   b);
    // Comparing with b keeps that of b.
    return builder_.CreateSelect(builder_.CreateFCmpUNO(a, a), a,
                                 builder_.CreateSelect(builder_.CreateFCmp(first, a, b), a, b));
  };
  switch (function) {
    case Function::Add:
      return builder_.CreateFAdd(a, b);
    case Function::Subtract:
      return builder_.CreateFSub(a, b);
    case Function::Multiply:
      return builder_.CreateFMul(a, b);
    case Function::Divide:
      return builder_.CreateFDiv(a, b);
    case Function::Remainder:
      return builder_.CreateFRem(a, b);
    case Function::Negate:
      return builder_.CreateFNeg(a);
    case Function::Minimum:
      return chosen(llvm::CmpInst::FCMP_OLT);
    case Function::Maximum:
      return chosen(llvm::CmpInst::FCMP_OGT);
    default:
      return emit_math(builder_, function, operands, math_);
  }
}

llvm::Value* ElementBuilder::of_integers(Function function, DType dtype,
                                         std::span<llvm::Value* const> operands) {
  llvm::Value *a = operands[0], *b = operands.size() > 1 ? operands[1] : nullptr;
  const bool with_sign = is_signed(dtype);
  switch (function) {
    case Function::Add:
      return builder_.CreateAdd(a, b);
    case Function::Subtract:
      return builder_.CreateSub(a, b);
    case Function::Multiply:
      return builder_.CreateMul(a, b);
    case Function::Divide:
    case Function::Remainder:
      return divide_integers(function, dtype, a, b);
    case Function::Minimum:
      return builder_.CreateBinaryIntrinsic(with_sign ? Intrinsic::smin : Intrinsic::umin, a, b);
    case Function::Maximum:
      return builder_.CreateBinaryIntrinsic(with_sign ? Intrinsic::smax : Intrinsic::umax, a, b);
    case Function::ShiftLeft:
    case Function::ShiftRight:
      return shift(function, dtype, a, b);
    case Function::And:
      return builder_.CreateAnd(a, b);
    case Function::Or:
      return builder_.CreateOr(a, b);
    case Function::Xor:
      return builder_.CreateXor(a, b);
    case Function::Not:
      return builder_.CreateNot(a);
    case Function::Negate:
      return builder_.CreateNeg(a);
    case Function::Absolute:
      return with_sign ? builder_.CreateIntrinsic(a->getType(), Intrinsic::abs, {a, builder_.getFalse()}) : a;
    default:
      throw user_error("{} of {}", info(function).name, dtype);
  }
}

// The kernel fails where b is 0. The one quotient that overflows wraps.
llvm::Value* ElementBuilder::divide_integers(Function function, DType dtype, llvm::Value* a, llvm::Value* b) {
  const bool divides = function == Function::Divide;
  llvm::Value* zero = builder_.CreateICmpEQ(b, constant_like(b, 0));
  fail_(zero);
  if (!is_signed(dtype)) {
    llvm::Value* safe = builder_.CreateSelect(zero, constant_like(b, 1), b);
    return divides ? builder_.CreateUDiv(a, safe) : builder_.CreateURem(a, safe);
  }
  llvm::Value* negates = builder_.CreateICmpEQ(b, constant_like(b, -1));
  llvm::Value* safe = builder_.CreateSelect(builder_.CreateOr(zero, negates), constant_like(b, 1), b);
  return divides ? builder_.CreateSelect(negates, builder_.CreateNeg(a), builder_.CreateSDiv(a, safe))
                 : builder_.CreateSelect(negates, constant_like(b, 0), builder_.CreateSRem(a, safe));
}

// By the width or more, nothing is left but the sign.
llvm::Value* ElementBuilder::shift(Function function, DType dtype, llvm::Value* a, llvm::Value* b) {
  const int bits = info(dtype).bits;
  llvm::Value* possible = builder_.CreateICmpULT(b, constant_like(b, bits));
  llvm::Value* amount = builder_.CreateSelect(possible, b, constant_like(b, bits - 1));
  if (function == Function::ShiftRight && is_signed(dtype))
    return builder_.CreateAShr(a, amount);
  llvm::Value* shifted =
      function == Function::ShiftLeft ? builder_.CreateShl(a, amount) : builder_.CreateLShr(a, amount);
  return builder_.CreateSelect(possible, shifted, constant_like(a, 0));
}

}  // namespace tenon::codegen
