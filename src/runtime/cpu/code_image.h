// code_image.h — the kernels of a saved program: machine code that was laid out when it was generated, so
// that it is run where it is mapped. Nothing in it depends on its address; what it calls outside, it calls
// through a table behind it, which is all that loading fills in.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "runtime/cpu/cpu_device.h"
#include "target/target.h"

namespace tenon::runtime {

// Where the functions of a kernel begin in an image is what its KernelCode has for bytes.
KernelCode code_in_image(std::span<const uint64_t> entries);

// Of the memory that an image is in: the largest page that systems have.
constexpr uint64_t page_of(Architecture architecture) {
  return architecture == Architecture::X86_64 ? 4 << 10 : 64 << 10;
}

// What an image calls outside, by names of library_functions.h, and where the table of their addresses is.
struct Imports {
  std::vector<std::string> names = {};
  uint64_t offset = 0;  // a multiple of the page
};

// Makes the bytes executable, which `file` keeps mapped; they are whole pages of it. Where it is null, they
// are the caller's, and a copy is made executable. An import that is not there is a user_error.
std::unique_ptr<CodeLoader> load_image(std::shared_ptr<const MappedFile> file,
                                       std::span<const std::byte> image, const Imports& imports);

}  // namespace tenon::runtime
