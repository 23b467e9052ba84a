// torch_words.h — PyTorch's words for ops and attributes, as fx and TorchScript show them.
#pragma once

#include <string>

#include "ir/graph.h"
#include "views/vocabulary.h"

namespace tenon {

const Vocabulary& torch_functions();  // torch.relu
const Vocabulary& aten_ops();         // aten::relu

// What PyTorch takes for one of our operands.
enum class TorchSlot : uint8_t { Tensor, TensorOrNumber, Number, Int, Ints };
TorchSlot torch_slot(const Node& node, std::string_view operand);
// Whether a value is a constant so short that it stands there as a number, or as a list of them.
bool is_number_for(TorchSlot slot, Value value);

std::string python_text(const Attribute& attribute);  // True, 'text', [1, 2], torch.float32

}  // namespace tenon
