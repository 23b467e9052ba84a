// trigonometry.cpp — angles within a quadrant and polynomials there; beyond ±2^22, the C library.
#include "codegen/llvm/trigonometry.h"

#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <numbers>

#include "codegen/llvm/polynomials.h"

namespace tenon::codegen {
namespace {

Lanes sign_bits(Lanes x) { return bits_of(x) & -std::ldexp(1.0, x.format().bits - 1); }

Lanes flip_sign(Lanes x, Lanes sign_bits) { return float_of(bits_of(x) ^ sign_bits); }

// |x| = quadrant · π/2 + angle, with |angle| ≤ π/4.
struct Angle {
  Lanes quadrant;  // modulo 4, in the lowest bits
  Lanes sine;
  Lanes cosine;
};

constexpr double largest_angle = 0x1p22;
constexpr double half_pi_high = 1.5707963267341256;  // 31 bits of π/2

// x - quadrants · π/2, with π/2 in parts so short that their products with quadrants are exact, but for the
// last.
Lanes subtract_quadrants_from_float(Lanes x, Lanes quadrants) {
  return multiply_add(quadrants, -6.077100506506192e-11, multiply_add(quadrants, -half_pi_high, x));
}

// The same of doubles. Near a multiple of π/2 only the last step rounds; elsewhere `lost` saves what the
// second step rounded off.
Lanes subtract_quadrants_from_double(Lanes x, Lanes quadrants) {
  constexpr double second = 6.07710049817245e-11, third = 8.333742909677158e-20,
                   fourth = 8.843720566135701e-29;
  x = multiply_add(quadrants, -half_pi_high, x);
  const Lanes angle = multiply_add(quadrants, -second, x);
  const Lanes lost = multiply_add(quadrants, -second, x - angle);
  return multiply_add(quadrants, -fourth, angle + multiply_add(quadrants, -third, lost));
}

// Floats are reduced as doubles, since those near multiples of π/2 need the bits.
Angle split_angle(Lanes x) {
  const bool is_double = x.is_double();
  Lanes angle = is_double ? absolute(x) : to_double(absolute(x));
  const Lanes shifted = multiply_add(angle, 2 * std::numbers::inv_pi, rounding_shift(angle));
  const Lanes quadrants = shifted - rounding_shift(angle);
  Lanes quadrant = bits_of(shifted);
  if (is_double) {
    angle = subtract_quadrants_from_double(angle, quadrants);
  } else {
    angle = to_float(subtract_quadrants_from_float(angle, quadrants));
    quadrant = x.of(x.builder().CreateTrunc(quadrant.value(), x.with_elements(x.builder().getInt32Ty())));
  }
  const Lanes square = angle * angle;
  const Lanes nearly_cosine = multiply_add(square, -0.5, 1.0);
  return {quadrant, odd_polynomial(angle, choose(x, sin_f32, sin_f64)),
          multiply_add(square * square, evaluate(choose(x, cos_f32, cos_f64), square), nearly_cosine)};
}

Lanes is_odd(Lanes quadrant) {
  return quadrant.of(quadrant.builder().CreateTrunc(quadrant.value(),
                                                    quadrant.with_elements(quadrant.builder().getInt1Ty())));
}

// Bit `bit` of the quadrant as a sign.
Lanes sign_from(Lanes quadrant, int bit) {
  const int bits = static_cast<int>(quadrant.type()->getScalarSizeInBits());
  return shift_left(shift_right(quadrant, bit), bits - 1);
}

// The double function `name` of the C library for each lane of x.
Lanes call_for_lanes(const char* name, Lanes x) {
  llvm::IRBuilderBase& builder = x.builder();
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  const llvm::FunctionCallee callee =
      module.getOrInsertFunction(name, builder.getDoubleTy(), builder.getDoubleTy());
  const auto call = [&](llvm::Value* lane) {
    llvm::Value* argument = builder.CreateFPExt(lane, builder.getDoubleTy());
    return builder.CreateFPTrunc(builder.CreateCall(callee, {argument}), x.type()->getScalarType());
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x.type());
  if (!vector)
    return x.of(call(x.value()));
  llvm::Value* results = llvm::PoisonValue::get(x.type());
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
    results = builder.CreateInsertElement(results, call(builder.CreateExtractElement(x.value(), lane)), lane);
  return x.of(results);
}

// `result`, but what the C library computes in the lanes where x is too large. Only then is it called.
Lanes repair_large_angles(const char* name, Lanes x, Lanes result) {
  llvm::IRBuilderBase& builder = x.builder();
  const Lanes is_large = absolute(x) > largest_angle;
  llvm::Value* any = x.type()->isVectorTy() ? builder.CreateOrReduce(is_large.value()) : is_large.value();

  llvm::BasicBlock* before = builder.GetInsertBlock();
  llvm::BasicBlock* call =
      llvm::BasicBlock::Create(builder.getContext(), "large_angles", before->getParent());
  llvm::BasicBlock* after = llvm::BasicBlock::Create(builder.getContext(), "angles", before->getParent());
  after->splice(after->end(), before, builder.GetInsertPoint(), before->end());
  after->replaceSuccessorsPhiUsesWith(before, after);
  builder.SetInsertPoint(before);
  builder.CreateCondBr(any, call, after, llvm::MDBuilder(builder.getContext()).createUnlikelyBranchWeights());
  builder.SetInsertPoint(call);
  const Lanes repaired = select(is_large, call_for_lanes(name, x), result);
  builder.CreateBr(after);
  builder.SetInsertPoint(after, after->begin());
  llvm::PHINode* either = builder.CreatePHI(x.type(), 2);
  either->addIncoming(result.value(), before);
  either->addIncoming(repaired.value(), call);
  return x.of(either);
}

// multiple · π/2 - x.
Lanes subtract_from_half_pi(double multiple, Lanes x) {
  const double high = x.pick(1.5707963705062866, 1.5707963267948966);
  const double low = x.pick(-4.3711390001862426e-08, 6.123233995736766e-17);
  return multiple * high - (x - multiple * low);
}

// asin(a) of a = |x| where that is below 9/16, elsewhere asin(√((1 - a) / 2)): half of what asin(a) lacks to
// π/2.
struct ArcSine {
  Lanes is_inner;
  Lanes value;
};

ArcSine split_arc_sine(Lanes x) {
  const Lanes magnitude = absolute(x);
  const Lanes is_inner = magnitude < 0.5625;
  const Lanes square = select(is_inner, x * x, multiply_add(magnitude, -0.5, 0.5));
  const Lanes root = select(is_inner, magnitude, square_root(square));
  return {is_inner, multiply_add(root * square, evaluate(choose(x, asin_f32, asin_f64), square), root)};
}

}  // namespace

Lanes emit_sin(Lanes x) {
  const Angle angle = split_angle(x);
  const Lanes magnitude = select(is_odd(angle.quadrant), angle.cosine, angle.sine);
  return repair_large_angles("sin", x, flip_sign(magnitude, sign_from(angle.quadrant, 1) ^ sign_bits(x)));
}

Lanes emit_cos(Lanes x) {
  const Angle angle = split_angle(x);
  const Lanes magnitude = select(is_odd(angle.quadrant), angle.sine, angle.cosine);
  return repair_large_angles("cos", x, flip_sign(magnitude, sign_from(add_integers(angle.quadrant, 1), 1)));
}

Lanes emit_tan(Lanes x) {
  const Angle angle = split_angle(x);
  const Lanes odd = is_odd(angle.quadrant);
  const Lanes ratio = select(odd, angle.cosine, angle.sine) / select(odd, angle.sine, angle.cosine);
  return repair_large_angles("tan", x, flip_sign(ratio, sign_from(angle.quadrant, 0) ^ sign_bits(x)));
}

Lanes emit_asin(Lanes x) {
  const ArcSine arc = split_arc_sine(x);
  return copy_sign(select(arc.is_inner, arc.value, subtract_from_half_pi(1, 2.0 * arc.value)), x);
}

Lanes emit_acos(Lanes x) {
  const ArcSine arc = split_arc_sine(x);
  const Lanes twice = 2.0 * arc.value;
  const Lanes outer = select(x < 0.0, subtract_from_half_pi(2, twice), twice);
  return select(arc.is_inner, subtract_from_half_pi(1, copy_sign(arc.value, x)), outer);
}

Lanes emit_atan(Lanes x) {
  const Lanes magnitude = absolute(x);
  const Lanes is_outer = magnitude > 1.0;
  const Lanes t = select(is_outer, 1.0 / magnitude, magnitude);
  const Lanes arc = odd_polynomial(t, choose(x, atan_f32, atan_f64));
  return copy_sign(select(is_outer, subtract_from_half_pi(1, arc), arc), x);
}

}  // namespace tenon::codegen
