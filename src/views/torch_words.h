// torch_words.h — PyTorch's words for ops and attributes, as fx and TorchScript show them.
#pragma once

#include <string>

#include "ir/graph.h"
#include "views/vocabulary.h"

namespace tenon {

const Vocabulary& torch_functions();  // torch.relu
const Vocabulary& aten_ops();         // aten::relu

std::string python_text(const Attribute& attribute);  // True, 'text', [1, 2], torch.float32

}  // namespace tenon
