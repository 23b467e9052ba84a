// dtype_words.h — what other tools call our dtypes.
#pragma once

#include <string_view>

#include "tensor/dtype.h"

namespace tenon {

struct DTypeWords {
  DType dtype;
  std::string_view onnx;    // float
  std::string_view torch;   // float32: of PyTorch's Python, and of Relay, which is NumPy's
  std::string_view script;  // Float: of TorchScript
  std::string_view hlo;     // f32
  int64_t script_number;    // what TorchScript gives as a dtype; -1 for strings, which are none
};

// A tool that has no such dtype is given a word like those it has.
const DTypeWords& words_for(DType dtype);

}  // namespace tenon
