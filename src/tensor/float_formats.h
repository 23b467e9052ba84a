// float_formats.h — the bits of every float format narrower than f32, decoded to double and encoded from it.
//
// A format is data: decode and encode are written once, from the layout sign | exponent | mantissa, and
// compiled for each format. Encoding rounds to nearest even straight from the double. The scale format e8m0
// has no sign, no mantissa and no zero, and stands apart.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon {

enum class Overflow : uint8_t {
  Natural,   // floats go to inf (or NaN where the type has no inf); integers wrap around
  Saturate,  // both go to the nearest finite value of the type
};

struct FloatFormat {
  int exponent_bits, mantissa_bits, bias;
  uint32_t largest;      // the finite value of greatest magnitude; larger magnitudes are infinity or NaN
  uint32_t overflow;     // where a positive overflow goes: infinity, NaN, or `largest` again
  uint32_t nan;          // where a positive NaN goes
  bool one_nan = false;  // fnuz: the bits of -0 are the only NaN, and there is no -0

  constexpr uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }
  constexpr bool has_infinity() const { return overflow > largest && overflow != nan; }
};

inline constexpr FloatFormat f16_format{5, 10, 15, 0x7bff, 0x7c00, 0x7e00};
inline constexpr FloatFormat bf16_format{8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0};
inline constexpr FloatFormat f8e4m3fn_format{4, 3, 7, 0x7e, 0x7f, 0x7f};
inline constexpr FloatFormat f8e4m3fnuz_format{4, 3, 8, 0x7f, 0x80, 0x80, true};
inline constexpr FloatFormat f8e5m2_format{5, 2, 15, 0x7b, 0x7c, 0x7e};
inline constexpr FloatFormat f8e5m2fnuz_format{5, 2, 16, 0x7f, 0x80, 0x80, true};
// No NaN: it becomes -0, as in ONNX's conformance data (its prose says 6).
inline constexpr FloatFormat f4e2m1_format{2, 1, 1, 0x7, 0x7, 0x8};

// 2^exponent, for the exponents of normal doubles.
constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

template <FloatFormat format>
constexpr double decode(uint32_t code) {
  const uint32_t magnitude = code & (format.sign() - 1);
  const bool negative = (code & format.sign()) != 0;
  double value = 0;
  if (magnitude > format.largest || (format.one_nan && code == format.nan)) {
    const bool infinite = format.has_infinity() && magnitude == format.overflow;
    value = infinite ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else {
    const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
    value = exponent == 0 ? mantissa * power_of_two(1 - format.bias - format.mantissa_bits)
                          : ((1u << format.mantissa_bits) + mantissa) *
                                power_of_two(exponent - format.bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

template <FloatFormat format>
constexpr uint32_t encode(double value, Overflow overflow) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff) - 1023;
  const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
  const uint32_t sign = (bits >> 63) != 0 ? format.sign() : 0;
  if (exponent == 1024 && fraction != 0)
    return sign | format.nan;

  // The significand is shifted down to the format's mantissa, further below the smallest normal number, and
  // rounded. It keeps its leading one, so that adding it to the exponent minus one gives the code, and a
  // carry out of the rounding moves on to the next exponent by itself.
  constexpr int smallest_normal = 1 - format.bias;
  const int scale = exponent > smallest_normal ? exponent : smallest_normal;
  const int shift = 52 - format.mantissa_bits + (scale - exponent);
  uint64_t magnitude = 0;
  if (shift <= 53) {  // beyond, less than half of the smallest number is left
    const uint64_t significand = fraction | (uint64_t{1} << 52);
    const uint64_t rest = significand & ((uint64_t{1} << shift) - 1);
    const uint64_t half = uint64_t{1} << (shift - 1);
    magnitude = significand >> shift;
    magnitude += rest > half || (rest == half && (magnitude & 1) != 0) ? 1 : 0;
    magnitude += static_cast<uint64_t>(scale - smallest_normal) << format.mantissa_bits;
  }
  if (magnitude > format.largest)
    magnitude = overflow == Overflow::Saturate ? format.largest : format.overflow;
  if (format.one_nan && magnitude == 0)
    return 0;
  return sign | static_cast<uint32_t>(magnitude);
}

// How a number between two powers of two becomes an e8m0 scale; ONNX's Cast rounds up unless told otherwise.
enum class ScaleRounding : uint8_t { Up, Down, Nearest };  // Nearest: halfway goes up

constexpr double decode_e8m0(uint32_t code) {
  return code == 0xff ? std::numeric_limits<double>::quiet_NaN() : power_of_two(static_cast<int>(code) - 127);
}

// Zero and whatever is below 2^-127 or rounds above 2^127 is out of range: NaN, or saturated the nearest
// scale. NaN and negative numbers are NaN.
uint32_t encode_e8m0(double value, Overflow overflow, ScaleRounding rounding);

}  // namespace tenon
