// conversions.h — which ops of PyTorch we know: one table per family, in a file of the family's name.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "frontends/torch/node_view.h"

namespace tenon::torch {

using Convert = std::function<std::vector<Value>(const NodeView&)>;
// What the tensor that a view was taken of becomes when the view becomes `updated`.
using WriteBack = std::function<Value(const NodeView&, Value base, Value updated)>;

// Whether a result shares memory with the first argument.
enum class Sharing : uint8_t {
  None,
  View,     // it always does
  IfSame,   // it does where the value is the same: nothing was to be converted
  Perhaps,  // the strides decide
};

struct Conversion {
  std::string_view
      op;  // add, for all its overloads; or max.dim, for one. Of other namespaces: higher_order.cond
  Convert convert;
  Sharing sharing = Sharing::None;
  WriteBack write = nullptr;
};

using Conversions = std::vector<Conversion>;

struct Found {
  const Conversion* conversion = nullptr;
  bool in_place = false;  // add_ is add, and changes its first argument
};

// The op of a target: add.Tensor of torch.ops.aten.add.Tensor; other namespaces keep their name.
std::string op_of(std::string_view target);
Found find_conversion(std::string_view op);
// Of a node that takes or gives complex numbers, which are pairs of reals along a last dimension.
Found find_complex_conversion(std::string_view op);
// All of them, by name.
std::vector<std::string_view> known_ops();

// The first argument of an op, whatever it is called.
constexpr std::string_view kSelf = "self";

}  // namespace tenon::torch
