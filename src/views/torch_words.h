// torch_words.h — PyTorch's names for dtypes and attributes, as fx and TorchScript show them.
#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon {

std::string_view torch_dtype(DType dtype);            // float32
std::string python_text(const Attribute& attribute);  // True, 'text', [1, 2], torch.float32

}  // namespace tenon
