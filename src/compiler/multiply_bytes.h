// multiply_bytes.h — products of quantised matrices.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Lets products of bytes with constant ones, each less a zero point, multiply the bytes as they are, four at
// a time, and take off what the zero points come to: with rows x and columns w,
//   sum (x - a)(w - b) = sum x*w - a * sum w - b * (sum x - a * count)
void multiply_bytes(Graph& graph);

}  // namespace tenon
