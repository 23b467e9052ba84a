#include "tensor/float_formats.h"

namespace tenon {

uint32_t encode_e8m0(double value, Overflow overflow, ScaleRounding rounding) {
  constexpr uint32_t nan = 0xff, largest = 0xfe, smallest = 0;
  if (std::isnan(value) || value < 0)
    return nan;
  if (value < power_of_two(-127))
    return overflow == Overflow::Saturate ? smallest : nan;
  if (std::isinf(value))
    return overflow == Overflow::Saturate ? largest : nan;
  int exponent = 0;
  const double significand = 2 * std::frexp(value, &exponent);  // in [1, 2), of 2^(exponent - 1)
  const bool up = (rounding == ScaleRounding::Up && significand > 1) ||
                  (rounding == ScaleRounding::Nearest && significand >= 1.5);
  const int rounded = exponent - 1 + (up ? 1 : 0);
  if (rounded > 127)
    return overflow == Overflow::Saturate ? largest : nan;
  return static_cast<uint32_t>(rounded + 127);
}

}  // namespace tenon
