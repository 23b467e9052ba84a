// lanes.h — values of LLVM IR with operators, so that code which emits arithmetic reads as its formula, and
// what most functions of math.h share.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "codegen/llvm/math.h"

namespace tenon::codegen {

// How the bits of a float are divided.
struct FloatFormat {
  int bits;
  int mantissa_bits;
  int exponent_bias;
};

struct LanesContext {
  llvm::IRBuilderBase& builder;
  MathOptions options;
};

// Floats, integers or bools: one, or a vector of them. A plain number takes the type of what it is combined
// with.
class Lanes {
 public:
  Lanes(double number) : number_(number) {}  // NOLINT: implicit, so that 2.0 * x can be written
  Lanes(const LanesContext& context, llvm::Value* value) : context_(&context), value_(value) {}

  llvm::Value* value() const { return value_; }
  llvm::Type* type() const { return value_->getType(); }
  const LanesContext& context() const { return *context_; }
  llvm::IRBuilderBase& builder() const { return context_->builder; }

  bool is_double() const { return type()->getScalarSizeInBits() == 64; }
  FloatFormat format() const { return is_double() ? FloatFormat{64, 52, 1023} : FloatFormat{32, 23, 127}; }
  double pick(double f32, double f64) const { return is_double() ? f64 : f32; }

  // The same in every lane.
  Lanes constant(double number) const {
    if (type()->isIntOrIntVectorTy())
      return of(llvm::ConstantInt::getSigned(type(), static_cast<int64_t>(number)));
    return of(llvm::ConstantFP::get(type(), number));
  }
  Lanes of(llvm::Value* value) const { return {*context_, value}; }

  // This type, of elements of another kind.
  llvm::Type* with_elements(llvm::Type* element) const { return type()->getWithNewType(element); }

  static std::pair<Lanes, Lanes> alike(Lanes a, Lanes b) {
    if (!a.value_)
      a = b.constant(a.number_);
    if (!b.value_)
      b = a.constant(b.number_);
    return {a, b};
  }

 private:
  const LanesContext* context_ = nullptr;
  llvm::Value* value_ = nullptr;  // none: a plain number
  double number_ = 0;
};

inline Lanes emit_binary(llvm::Instruction::BinaryOps op, Lanes a, Lanes b) {
  const auto [x, y] = Lanes::alike(a, b);
  return x.of(x.builder().CreateBinOp(op, x.value(), y.value()));
}

// Of floats.
inline Lanes operator+(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::FAdd, a, b); }
inline Lanes operator-(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::FSub, a, b); }
inline Lanes operator*(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::FMul, a, b); }
inline Lanes operator/(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::FDiv, a, b); }

inline Lanes emit_comparison(llvm::CmpInst::Predicate predicate, Lanes a, Lanes b) {
  const auto [x, y] = Lanes::alike(a, b);
  return x.of(x.builder().CreateFCmp(predicate, x.value(), y.value()));
}

// Of floats; false where either is NaN.
inline Lanes operator<(Lanes a, Lanes b) { return emit_comparison(llvm::CmpInst::FCMP_OLT, a, b); }
inline Lanes operator>(Lanes a, Lanes b) { return emit_comparison(llvm::CmpInst::FCMP_OGT, a, b); }
inline Lanes operator==(Lanes a, Lanes b) { return emit_comparison(llvm::CmpInst::FCMP_OEQ, a, b); }

// Of integers and bools, bit by bit.
inline Lanes operator&(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::And, a, b); }
inline Lanes operator|(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::Or, a, b); }
inline Lanes operator^(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::Xor, a, b); }
inline Lanes operator!(Lanes a) { return a.of(a.builder().CreateNot(a.value())); }

// Of integers.
inline Lanes add_integers(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::Add, a, b); }
inline Lanes subtract_integers(Lanes a, Lanes b) { return emit_binary(llvm::Instruction::Sub, a, b); }
inline Lanes shift_left(Lanes a, int bits) { return emit_binary(llvm::Instruction::Shl, a, bits); }
inline Lanes shift_right(Lanes a, int bits) { return emit_binary(llvm::Instruction::LShr, a, bits); }

// At most one of `yes` and `no` may be a plain number.
inline Lanes select(Lanes condition, Lanes yes, Lanes no) {
  const auto [x, y] = Lanes::alike(yes, no);
  return x.of(x.builder().CreateSelect(condition.value(), x.value(), y.value()));
}

// Kept within limits; NaN stays.
inline Lanes clamp(Lanes x, double lowest, double highest) {
  x = select(x > highest, highest, x);
  return select(x < lowest, lowest, x);
}

inline Lanes emit_intrinsic(llvm::Intrinsic::ID intrinsic, Lanes x) {
  return x.of(x.builder().CreateUnaryIntrinsic(intrinsic, x.value()));
}
inline Lanes absolute(Lanes x) { return emit_intrinsic(llvm::Intrinsic::fabs, x); }
inline Lanes square_root(Lanes x) { return emit_intrinsic(llvm::Intrinsic::sqrt, x); }
inline Lanes floor(Lanes x) { return emit_intrinsic(llvm::Intrinsic::floor, x); }
inline Lanes copy_sign(Lanes magnitude, Lanes sign) {
  return magnitude.of(
      magnitude.builder().CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude.value(), sign.value()));
}

// a · b + c, rounded once where that is cheap, else twice.
inline Lanes multiply_add(Lanes a, Lanes b, Lanes c) {
  std::tie(a, b) = Lanes::alike(a, b);
  std::tie(a, c) = Lanes::alike(a, c);
  if (!a.context().options.fused_multiply_add)
    return a * b + c;
  return a.of(
      a.builder().CreateIntrinsic(llvm::Intrinsic::fma, {a.type()}, {a.value(), b.value(), c.value()}));
}

// The bits of floats as integers, and back.
inline Lanes bits_of(Lanes x) {
  return x.of(x.builder().CreateBitCast(x.value(), x.with_elements(x.builder().getIntNTy(x.format().bits))));
}
inline Lanes float_of(Lanes bits) {
  llvm::Type* element = bits.is_double() ? bits.builder().getDoubleTy() : bits.builder().getFloatTy();
  return bits.of(bits.builder().CreateBitCast(bits.value(), bits.with_elements(element)));
}

inline Lanes to_double(Lanes x) {
  return x.of(x.builder().CreateFPExt(x.value(), x.with_elements(x.builder().getDoubleTy())));
}

inline Lanes to_float(Lanes x) {
  return x.of(x.builder().CreateFPTrunc(x.value(), x.with_elements(x.builder().getFloatTy())));
}

// Adding 1.5 · 2^mantissa_bits rounds to an integer and leaves it in the lowest bits.
inline double rounding_shift(Lanes x) { return std::ldexp(1.5, x.format().mantissa_bits); }

using Coefficients = std::span<const double>;

inline Coefficients choose(Lanes x, Coefficients f32, Coefficients f64) { return x.is_double() ? f64 : f32; }

// c[0] + c[1] x + c[2] x² + …
inline Lanes evaluate(Coefficients coefficients, Lanes x) {
  Lanes sum = x.constant(coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;)
    sum = multiply_add(sum, x, coefficients[i]);
  return sum;
}

// x + x³ P(x²).
inline Lanes odd_polynomial(Lanes x, Coefficients polynomial) {
  const Lanes square = x * x;
  return multiply_add(x * square, evaluate(polynomial, square), x);
}

}  // namespace tenon::codegen
