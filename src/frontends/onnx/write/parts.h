// parts.h — constant expressions computed part by part: weights of any size pass through a few megabytes.
#pragma once

#include "ir/graph.h"

namespace tenon::onnx {

// The elements of a constant expression, some of them at a time, in their order. What they are computed of is
// read as it is needed, and given back to its file.
void compute_in_parts(Value value, const std::function<void(const Tensor&)>& use);

// Bytes of a mapped file, some at a time, which are given back after their use.
void read_in_parts(std::span<const std::byte> mapped,
                   const std::function<void(std::span<const std::byte>)>& use);

}  // namespace tenon::onnx
