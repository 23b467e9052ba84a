// quantized_operands.h — products and convolutions of bytes with constant ones, each less a zero point, from
// the bytes as they are: with rows x and columns w,
//   sum (x - a)(w - b) = sum x*w - a * sum w - b * (sum x - a * count)
#pragma once

#include "ir/graph.h"

namespace tenon {

// Bytes, with or without a sign, and the one number of i32 that is subtracted from each.
struct QuantizedOperand {
  Value bytes;
  std::optional<Value> zero_point;
};

// The same of a constant; what is subtracted may differ from column to column, or from filter to filter.
struct QuantizedWeights {
  Tensor bytes;
  std::vector<int32_t> zero_points;  // one, or one for each
};

// Whether sums of so many products of bytes are exact in floats.
inline bool sums_fit_floats(int64_t products) { return products * UINT8_MAX * 128 <= int64_t{1} << 24; }

// What a node of matmul or conv computes of such operands, exactly, in integers of 32 bits that may overflow,
// or in floats. Nothing where it had better be computed otherwise.
std::optional<Value> quantized_product(const Node& matmul, const QuantizedOperand& x,
                                       const QuantizedWeights& w);
std::optional<Value> quantized_convolution(const Node& conv, const QuantizedOperand& x,
                                           const QuantizedWeights& w);

}  // namespace tenon
