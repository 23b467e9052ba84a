// script_text.h — types and constants as TorchScript writes them.
#pragma once

#include "ir/graph.h"

namespace tenon {

std::string script_type(const Type& type);               // Float(1, 4); a size that is not known is *
std::string script_type(const Attribute& attribute);     // int[]
std::string script_text(const Attribute& attribute);     // [1, 2]; a dtype is a number, a bool 0 or 1
std::string script_type(const Literal& literal);         // Float(4, strides=[1], requires_grad=0, device=cpu)
std::string script_tensor(const Literal& literal);       // {2}, or <Tensor> for one of several elements
std::string script_number_type(const Literal& literal);  // float, int or bool; of a list when it is one

}  // namespace tenon
