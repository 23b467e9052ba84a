// cuda_library.h — where the libraries of CUDA are looked for.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/shared_library.h"

namespace tenon::runtime::cuda {

// A variable of the environment, where it is set and not empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// The folder that TENON_CUDA_PATH names comes first; then what the process has loaded (as PyTorch does) and
// what the system finds; then CUDA_PATH and CUDA_HOME, /usr/local/cuda*, and the packages that pip installed
// for VIRTUAL_ENV or for the python3 in PATH. Folders that are not there are left out, but for the one that
// was named.
LibrarySearch search_cuda(std::vector<std::string> names, const Environment& environment);

// Loads one, by these names.
SharedLibrary open_cuda_library(std::vector<std::string> names);

}  // namespace tenon::runtime::cuda
