// rounded_sums.h — constants that are added one after the other to round what they are added to.
#pragma once

#include <cmath>

#include "tensor/rounding.h"
#include "tensor/wide.h"

namespace tenon {

// Of an ordinary float; f32 counts as bf16.
inline double greatest_finite(DType dtype) {
  return dtype == DType::F64 ? 0x1.fffffffffffffp1023 : dtype == DType::F16 ? 65504 : 0x1.fep127;
}

// Adding c rounds off what c + d must not bring back: (x + 2²³) - 2²³ is x rounded, and not x.
inline bool sum_keeps_rounding(const Tensor& c, const Tensor& d) {
  constexpr double kMostRoundedOff = 0x1p-10;
  const double step = rounding_step(c.dtype()), greatest = greatest_finite(c.dtype());
  for (double first : widen<double>(c))
    for (double second : widen<double>(d)) {
      const double sum = std::fabs(first + second), larger = std::max(std::fabs(first), std::fabs(second));
      if (sum > greatest || (sum < larger / 2 && larger * step > kMostRoundedOff))
        return false;
    }
  return true;
}

}  // namespace tenon
