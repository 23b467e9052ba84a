// canonical_names.h — kernels with names of their own, so that equal ones are seen to be equal.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// A kernel, and what its names stood for.
struct NamedKernel {
  Kernel kernel;
  std::vector<std::string> reads, writes;
  std::vector<std::string> symbols;  // of sizes, in the order of the kernel's
  std::vector<std::string> sources;
};

NamedKernel canonicalize_names(Kernel kernel);

}  // namespace tenon::loops
