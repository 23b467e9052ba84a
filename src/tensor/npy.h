// npy.h — NumPy's .npy and .npz files in and out.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace tenon {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;  // in file order

Tensor parse_npy(
    std::span<const std::byte> bytes);    // versions 1 to 3, either byte order, either memory order
std::string format_npy(const Tensor& t);  // dtypes NumPy lacks are written as f32 (floats) or i8/u8

NamedTensors read_npz(const std::filesystem::path& path);
// Written to a temporary file beside `path`, then renamed: never half a file.
void write_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace tenon
