// link_image.h — lays out object files as one image that is run where it is mapped: see
// runtime/cpu/code_image.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/cpu/code_image.h"
#include "target/target.h"

namespace tenon::codegen {

struct Image {
  std::string bytes;                           // whole pages of any size
  std::vector<std::vector<uint64_t>> entries;  // where the functions of each kernel begin
  runtime::Imports imports;
};

// Of the kernels that generate_object made for an architecture.
Image link_image(std::span<const runtime::KernelCode> kernels, Architecture architecture);

}  // namespace tenon::codegen
