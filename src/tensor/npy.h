// npy.h — NumPy's .npz files in and out: archives of .npy files.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace tenon {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;  // in file order

NamedTensors read_npz(const std::filesystem::path& path);
// Whole or not at all (write_file.h). DTypes NumPy lacks are written as f32 (floats) or i8/u8.
void write_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tenon
