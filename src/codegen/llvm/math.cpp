// math.cpp — each function as an argument brought to a small range, a polynomial there, and the way back.
//
// What a select discards may be NaN or infinite: it is never added to, only left out.
#include "codegen/llvm/math.h"

#include <llvm/IR/IntrinsicsX86.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "codegen/llvm/lane_parts.h"
#include "codegen/llvm/lanes.h"
#include "codegen/llvm/polynomials.h"
#include "codegen/llvm/trigonometry.h"

namespace tenon::codegen {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// ln(2) in two parts, the first so short that its product with an exponent is exact.
double ln2_high(Lanes x) { return x.pick(0.693145751953125, 0.6931471805592082); }
double ln2_low(Lanes x) { return x.pick(1.4286068203094173e-06, 7.371002565167799e-13); }

// high + low, a number of more bits than its type has: low is what rounding to high left over.
struct Pair {
  Lanes high;
  Lanes low;
};

Pair add_exactly(Lanes a, Lanes b) {
  const Lanes sum = a + b;
  const Lanes of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

// The same, where |larger| ≥ |smaller|.
Pair add_smaller_exactly(Lanes larger, Lanes smaller) {
  const Lanes sum = larger + smaller;
  return {sum, smaller - (sum - larger)};
}

// Halves of a double, each so short that products of two are exact (Veltkamp).
Pair halve_bits(Lanes x) {
  const Lanes shifted = x * 134217729.0;  // 2^27 + 1
  const Lanes high = shifted - (shifted - x);
  return {high, x - high};
}

Pair multiply_exactly(Lanes a, Lanes b) {
  const Lanes product = a * b;
  if (a.context().options.fused_multiply_add)
    return {product, multiply_add(a, b, -1.0 * product)};
  const Pair x = halve_bits(a), y = halve_bits(b);  // Dekker
  return {product, ((x.high * y.high - product) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

Pair operator*(const Pair& a, const Pair& b) {
  const Pair product = multiply_exactly(a.high, b.high);
  return {product.high, product.low + (a.high * b.low + a.low * b.high)};
}

// exp(x) = 2^n (1 + fraction).
struct Exponential {
  Lanes n;
  Lanes power;  // n + offset in its lowest bits
  Lanes fraction;
};

Exponential split_exponential(Lanes x, int offset, Coefficients polynomial) {
  const double shift = rounding_shift(x) + offset;
  const Lanes power = multiply_add(x, std::numbers::log2e, shift);
  const Lanes n = power - shift;
  const Lanes rest = multiply_add(n, -ln2_low(x), multiply_add(n, -ln2_high(x), x));
  return {n, bits_of(power), multiply_add(rest * rest, evaluate(polynomial, rest), rest)};
}

// The power of two whose exponent is in the lowest bits.
Lanes power_of_two(Lanes bits) { return float_of(shift_left(bits, bits.format().mantissa_bits)); }

constexpr int64_t kLanesToScale = 16;

bool may_scale_registers(Lanes x) {
  const auto lanes = static_cast<uint64_t>(count_lanes(x.value()));
  return x.context().options.scales_registers && !x.is_double() && lanes >= kLanesToScale &&
         std::has_single_bit(lanes);
}

Lanes scale_registers(Lanes x, Lanes n) {
  llvm::IRBuilderBase& builder = x.builder();
  return x.of(in_parts(
      builder, {x.value(), n.value()}, count_lanes(x.value()), kLanesToScale,
      [&](const std::vector<llvm::Value*>& operands) -> llvm::Value* {
        llvm::Value *all_lanes = builder.getInt16(0xffff), *usual_rounding = builder.getInt32(4);
        return builder.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                                       {operands[0], operands[1], operands[0], all_lanes, usual_rounding});
      }));
}

// x · 2^n, also where 2^n is none of the type's numbers: by two factors, of which only the second may round,
// or by an instruction, which gives the same. The offset was twice the bias.
Lanes scale(Lanes x, const Exponential& e) {
  if (may_scale_registers(x))
    return scale_registers(x, e.n);
  const Lanes half = shift_right(e.power, 1);
  return x * power_of_two(half) * power_of_two(subtract_integers(e.power, half));
}

// Where the result is 0, as of all that a mask leaves out of a softmax, it is not found by rounding: some
// machines take a hundred cycles for that.
Lanes emit_exp(Lanes x) {
  x = clamp(x, x.pick(-104, -746), x.pick(89, 710));
  const Exponential e = split_exponential(x, 2 * x.format().exponent_bias, choose(x, exp_f32, exp_f64));
  return scale(select(x < x.pick(-103.98, -745.2), 0.0, 1.0 + e.fraction), e);
}

// 2^addend exp(x), where 2^(n + addend) is a normal number.
Lanes exp_within_range(Lanes x, int addend, Coefficients polynomial) {
  const Exponential e = split_exponential(x, x.format().exponent_bias + addend, polynomial);
  const Lanes power = power_of_two(e.power);
  return multiply_add(power, e.fraction, power);
}

// Where a polynomial does not do: 1 - 2 / (exp(2|x|) + 1).
Lanes emit_tanh(Lanes x) {
  const double nearly_one = x.pick(10, 20);
  const Lanes magnitude = absolute(x);
  const Lanes twice = 2.0 * select(magnitude > nearly_one, nearly_one, magnitude);
  const Exponential e = split_exponential(twice, x.format().exponent_bias, choose(x, exp_f32, exp_f64));
  const Lanes power = power_of_two(e.power);
  const Lanes outer = 1.0 - 2.0 / multiply_add(power, e.fraction, power + 1.0);
  const Lanes inner = odd_polynomial(magnitude, choose(x, tanh_f32, tanh_f64));
  return copy_sign(select(magnitude < 0.54, inner, outer), x);
}

// exp(x) / 4, for sinh and cosh: these reach further than exp.
Lanes quarter_exponential(Lanes x) {
  const double overflows = x.pick(89.5, 710.6);
  return exp_within_range(select(x > overflows, overflows, x), -2, choose(x, exp_f32, exp_f64));
}

// Where a polynomial does not do, with q = exp(|x|) / 4: 2 (q - 1 / 16q).
Lanes emit_sinh(Lanes x) {
  const Lanes magnitude = absolute(x);
  const Lanes q = quarter_exponential(magnitude);
  const Lanes inner = odd_polynomial(magnitude, choose(x, sinh_f32, sinh_f64));
  return copy_sign(select(magnitude < 1.0, inner, 2.0 * (q - 0.0625 / q)), x);
}

// With q = exp(|x|) / 4: 2 (q + 1 / 16q).
Lanes emit_cosh(Lanes x) {
  const Lanes q = quarter_exponential(absolute(x));
  return 2.0 * (q + 0.0625 / q);
}

// x = 2^exponent (1 + fraction), with 1 + fraction from √½ to √2; x is positive, finite and normal.
struct Logarithm {
  Lanes exponent;
  Lanes biased_exponent;  // as an integer
  Lanes fraction;
};

Logarithm split_logarithm(Lanes x) {
  const FloatFormat format = x.format();
  const double unit = std::ldexp(1.0, format.mantissa_bits);
  const double lowest_bits = x.pick(0x3F3504F3, 0x3FE6A09E00000000);  // of √½
  const Lanes shifted = subtract_integers(bits_of(x), lowest_bits - format.exponent_bias * unit);
  const Lanes biased = shift_right(shifted, format.mantissa_bits);
  // As the lowest bits of 2^mantissa_bits, because machines convert 64-bit integers slowly.
  const double bits_of_unit = (format.mantissa_bits + format.exponent_bias) * unit;
  const Lanes exponent = float_of(biased | bits_of_unit) - (unit + format.exponent_bias);
  const Lanes mantissa = float_of(add_integers(shifted & (unit - 1), lowest_bits));
  return {exponent, biased, mantissa - 1.0};
}

Lanes join_logarithm(Lanes exponent, Lanes fraction, Coefficients polynomial) {
  const Lanes square = fraction * fraction;
  Lanes rest = multiply_add(exponent, ln2_low(exponent), square * fraction * evaluate(polynomial, fraction));
  rest = multiply_add(square, -0.5, rest);
  return multiply_add(exponent, ln2_high(exponent), fraction + rest);
}

Lanes join_logarithm(Lanes exponent, Lanes fraction) {
  return join_logarithm(exponent, fraction, choose(exponent, log_f32, log_f64));
}

// Positive x as a normal number: x · 2^shift, and what to add to the exponent for that.
struct Normal {
  Lanes x;
  Lanes exponent;
};

Normal make_normal(Lanes x) {
  const FloatFormat format = x.format();
  const Lanes is_subnormal = x < std::ldexp(1.0, 1 - format.exponent_bias);
  const int shift = format.mantissa_bits + 1;
  return {select(is_subnormal, x * std::ldexp(1.0, shift), x), select(is_subnormal, x.constant(-shift), 0.0)};
}

Lanes emit_log(Lanes x) {
  const Normal normal = make_normal(x);
  const Logarithm logarithm = split_logarithm(normal.x);
  Lanes result = join_logarithm(logarithm.exponent + normal.exponent, logarithm.fraction);
  result = select(x < infinity, result, x);
  result = select(x == 0.0, -infinity, result);
  return select(x < 0.0, not_a_number, result);
}

// log(x) + extra · ln(2), where x is at least √½ and less than half of the largest number.
Lanes log_of_pair(const Pair& x, Lanes extra) {
  const Logarithm logarithm = split_logarithm(x.high);
  const Lanes biased = logarithm.biased_exponent;
  const Lanes inverse = power_of_two(subtract_integers(2 * x.high.format().exponent_bias, biased));
  return join_logarithm(logarithm.exponent + extra, multiply_add(x.low, inverse, logarithm.fraction));
}

// log(1 + y), or log(2x) where x is so large that it is the same; NaN where x is, infinity where x is.
Lanes log_from_one(Lanes x, Lanes y) {
  const Lanes is_large = x > x.pick(0x1p12, 0x1p28);
  const Pair sum = add_exactly(x.constant(1.0), y);
  const Pair argument = {select(is_large, 0.25 * x, sum.high), select(is_large, 0.0, sum.low)};
  return select(x < infinity, log_of_pair(argument, select(is_large, x.constant(3.0), 0.0)), x);
}

// log(|x| + √(x² + 1)), written so that nothing cancels.
Lanes emit_asinh(Lanes x) {
  const Lanes magnitude = absolute(x);
  const Lanes square = x * x;
  const Lanes y = magnitude + square / (1.0 + square_root(1.0 + square));
  return copy_sign(log_from_one(magnitude, y), x);
}

// log(x + √(x² - 1)), written with t = x - 1 so that nothing cancels.
Lanes emit_acosh(Lanes x) {
  const Lanes t = x - 1.0;
  const Lanes result = log_from_one(x, t + square_root(multiply_add(t, t, 2.0 * t)));
  return select(x < 1.0, not_a_number, result);
}

// ½ log((1 + |x|) / (1 - |x|)).
Lanes emit_atanh(Lanes x) {
  const Lanes magnitude = absolute(x);
  const Lanes y = 2.0 * magnitude / (1.0 - magnitude);
  Lanes result = 0.5 * log_of_pair(add_exactly(x.constant(1.0), y), x.constant(0.0));
  result = select(magnitude < 1.0, result, select(magnitude == 1.0, x.constant(infinity), not_a_number));
  return copy_sign(result, x);
}

Lanes emit_erf(Lanes x) {
  const Lanes magnitude = absolute(x);
  const Lanes inner = multiply_add(magnitude, evaluate(choose(x, erf_f32, erf_f64), x * x), magnitude);
  const double middle = x.pick(2.46875, 3.46875);
  const double nearly_one = 2 * middle - 1;
  const Lanes from_middle = select(magnitude > nearly_one, nearly_one, magnitude) - middle;
  const Lanes outer = 1.0 - evaluate(choose(x, erf_tail_f32, erf_tail_f64), from_middle);
  return copy_sign(select(magnitude < 1.0, inner, outer), x);
}

// x^y of positive finite floats by way of doubles, which have bits to spare.
Lanes power_of_floats(Lanes x, Lanes y) {
  const Logarithm logarithm = split_logarithm(to_double(x));
  const Lanes exponent = to_double(y) * join_logarithm(logarithm.exponent, logarithm.fraction, log_power);
  return to_float(exp_within_range(clamp(exponent, -200, 200), 0, exp_power));
}

// log of a positive finite double: with s = (m - 1) / (m + 1), log(m) = 2s + s³ (2/3 + …).
Pair precise_logarithm(Lanes x) {
  const Normal normal = make_normal(x);
  const Logarithm logarithm = split_logarithm(normal.x);
  const Lanes exponent = logarithm.exponent + normal.exponent;
  const Lanes f = logarithm.fraction;

  const Pair divisor = add_smaller_exactly(x.constant(2.0), f);
  const Lanes inverse = 1.0 / divisor.high;
  const Lanes quotient = f * inverse;
  const Pair back = multiply_exactly(quotient, divisor.high);
  const Pair s = {quotient, ((f - back.high) - back.low - quotient * divisor.low) * inverse};

  const Pair square = s * s;
  const Pair factor =
      add_smaller_exactly(x.constant(2.0 / 3),
                          multiply_add(square.high, evaluate(log_ratio, square.high), 3.700743415417188e-17));
  const Pair cubic = s * (square * factor);
  const Pair of_mantissa = add_smaller_exactly(2.0 * s.high, cubic.high);
  const Pair sum = add_exactly(exponent * ln2_high(x), of_mantissa.high);
  const Lanes low = sum.low + (of_mantissa.low + (cubic.low + 2.0 * s.low));
  return {sum.high, multiply_add(exponent, ln2_low(x), low)};
}

Lanes power_of_doubles(Lanes x, Lanes y) {
  const Pair logarithm = precise_logarithm(x);
  const Pair product = multiply_exactly(y, logarithm.high);
  const Lanes low = select(absolute(product.high) < 800.0, multiply_add(y, logarithm.low, product.low), 0.0);
  const Exponential e =
      split_exponential(clamp(product.high, -800, 800), 2 * x.format().exponent_bias, exp_f64);
  const Lanes power = 1.0 + e.fraction;
  return scale(multiply_add(power, low, power), e);
}

Lanes is_integer(Lanes x) { return floor(x) == x; }

// By the magnitudes, with what C says about zeros, infinities, NaN and negative x.
Lanes emit_power(Lanes x, Lanes y) {
  const Lanes magnitude = absolute(x);
  const Lanes limited =
      clamp(y, -0x1p80, 0x1p80);  // so that an infinite y need no care: x^y is 0, 1 or infinite long before
  Lanes result = x.is_double() ? power_of_doubles(magnitude, limited) : power_of_floats(magnitude, limited);

  const Lanes is_zero = magnitude == 0.0;
  const Lanes is_infinite = magnitude == infinity;
  const Lanes at_end = select((y > 0.0) ^ is_zero, x.constant(infinity), 0.0);
  result = select(is_zero | is_infinite, at_end, result);

  const Lanes is_whole = is_integer(y);
  const Lanes is_odd = is_whole & !is_integer(0.5 * y);
  result = select(is_odd, copy_sign(result, x), result);
  result = select((x < 0.0) & !is_infinite & !is_whole, not_a_number, result);
  result = select(emit_comparison(llvm::CmpInst::FCMP_UNO, x, y), not_a_number, result);
  return select((x == 1.0) | (y == 0.0), 1.0, result);
}

Lanes emit_unary(loops::Function function, Lanes x) {
  using loops::Function;
  switch (function) {
    case Function::Exp:
      return emit_exp(x);
    case Function::Log:
      return emit_log(x);
    case Function::Sin:
      return emit_sin(x);
    case Function::Cos:
      return emit_cos(x);
    case Function::Tan:
      return emit_tan(x);
    case Function::Asin:
      return emit_asin(x);
    case Function::Acos:
      return emit_acos(x);
    case Function::Atan:
      return emit_atan(x);
    case Function::Sinh:
      return emit_sinh(x);
    case Function::Cosh:
      return emit_cosh(x);
    case Function::Tanh:
      return emit_tanh(x);
    case Function::Asinh:
      return emit_asinh(x);
    case Function::Acosh:
      return emit_acosh(x);
    case Function::Atanh:
      return emit_atanh(x);
    case Function::Erf:
      return emit_erf(x);
    case Function::Sqrt:
      return square_root(x);
    case Function::Absolute:
      return absolute(x);
    case Function::Floor:
      return floor(x);
    case Function::Ceil:
      return emit_intrinsic(llvm::Intrinsic::ceil, x);
    case Function::Round:
      return emit_intrinsic(llvm::Intrinsic::roundeven, x);
    default:
      break;
  }
  CHECK(false, "{} is no function of math.h", loops::info(function).name);
  return x;
}

}  // namespace

llvm::Value* emit_math(llvm::IRBuilderBase& builder, loops::Function function,
                       std::span<llvm::Value* const> operands, MathOptions options) {
  const llvm::Type* element = operands[0]->getType()->getScalarType();
  CHECK(element->isFloatTy() || element->isDoubleTy(), "{} of neither f32 nor f64",
        loops::info(function).name);
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  const LanesContext context{builder, options};
  const Lanes x(context, operands[0]);
  if (function == loops::Function::Power)
    return emit_power(x, Lanes(context, operands[1])).value();
  return emit_unary(function, x).value();
}

}  // namespace tenon::codegen
