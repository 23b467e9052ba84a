// constants.h — values that depend on constants alone: they are written as initializers, computed one at a
// time when their turn comes.
#pragma once

#include <span>
#include <unordered_map>

#include "ir/graph.h"

namespace tenon::onnx {

class ConstantExpressions {
 public:
  // Whether the value is to be computed when it is written. One that would be far larger than what it is
  // computed of, or that is computed of weights which are written as they are too, is not, and nothing
  // that is dequantised: the model would grow.
  bool contains(Value value);

  // Whether the value depends on constants alone, however large it is.
  bool is_computable(Value value);

 private:
  bool find_out(const Node& node);
  bool disappears(const Node& node);
  bool is_stored_for_others(Value value, const Node& node);

  std::unordered_map<const Node*, bool> known_, computable_;
  int64_t growth_left_ = int64_t{64} << 20;  // bytes, of all values together
};

// The bytes that the elements of a constant expression take in a file; not of strings.
uint64_t size_in_file(Value value);

// The elements. What was computed on the way is forgotten.
Tensor compute(Value value);

// Calls `use` with the elements as they stand in files, some at a time where there are many. A weight that is
// in a file already is not copied.
void with_packed(Value value, const std::function<void(std::span<const std::byte>)>& use);

}  // namespace tenon::onnx
