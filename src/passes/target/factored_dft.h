// factored_dft.h — transforms that are too long for one product, as products with the matrices of their
// factors.
#pragma once

#include "ir/graph.h"

namespace tenon {

struct FactoredDft {
  int64_t length;        // of the signal
  int64_t kept;          // how many numbers of the spectrum are wanted, from the first on
  int64_t result_parts;  // 2 for complex numbers, 1 for their real parts alone
};

// x [rows…, parts, up to length], with real parts alone or imaginary ones after them, and zeros where it is
// shorter, becomes [rows…, kept, result_parts]. An inverse is divided by the length.
Value factored_dft(Value x, const FactoredDft& dft, bool inverse);

}  // namespace tenon
