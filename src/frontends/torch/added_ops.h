// added_ops.h — operators of PyTorch that ops stand for which a program adds.
#pragma once

#include <string_view>

#include "ir/op.h"

namespace tenon::torch {

// From now on, all overloads of the operator NAMESPACE::NAME are read as this op, which is never destroyed.
// Its tensors are the operands of their names, and its other arguments the attributes.
void add_torch_name(const OpDef& op, std::string_view name);

}  // namespace tenon::torch
