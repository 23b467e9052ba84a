#include "ops/rounding.h"

#include <algorithm>

#include "tensor/wide.h"

namespace tenon {

void round_step(DType dtype, std::span<double> values) {
  if (!is_float(dtype) || info(dtype).bits > 16)
    return;
  const Extents extents = {static_cast<int64_t>(values.size())};
  std::ranges::copy(widen<double>(narrow<double>(dtype, extents, values)), values.begin());
}

}  // namespace tenon
