// torch_calls.h — ops that PyTorch has no single word for with our arguments, as the calls it makes for them.
#pragma once

#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// The result of an earlier call for the same node.
struct EarlierCall {
  size_t number;
};

// The only element of a value, where PyTorch wants a number.
struct OnlyElement {
  Value value;
};

// All elements of a value, where PyTorch wants ints.
struct AllElements {
  Value value;
};

// Several values, where PyTorch wants a list of tensors.
struct TensorList {
  std::vector<Value> values;
};

// None, one of our values or its elements, a list of values, a constant, or an earlier call.
using TorchOperand =
    std::variant<std::monostate, Value, OnlyElement, AllElements, TensorList, Attribute, EarlierCall>;

struct TorchArgument {
  std::string_view name;  // theirs
  TorchOperand operand;
};

struct TorchCall {
  std::string_view function, aten;  // torch.flip, aten::flip
  std::vector<TorchArgument> arguments;
  std::vector<TorchArgument> by_name = {};         // more of them, which fx gives by name
  std::vector<TorchArgument> aten_arguments = {};  // all that aten takes, where it is not the same
  // x[:, start:end:step] or x[:, indices]: after x, fx shows this of `arguments`, and the axis before it.
  std::optional<int64_t> subscript_axis = std::nullopt;
};

// The calls for a node, of which the last gives its result; none where one word tells all, or no calls can.
std::vector<TorchCall> torch_calls(const Node& node);

// How many results the last call gives: the indices of a max_pool are left out when nobody uses them.
int64_t shown_result_count(const Node& node);

}  // namespace tenon
