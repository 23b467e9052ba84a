// time_kernels.h — how long a loop nest takes, before and after it was rearranged.
#pragma once

#include "loops/kernel.h"

namespace tenon::cli {

// A loop nest as it was at some time, and what that is called.
struct NamedKernel {
  std::string title;
  const loops::Kernel* kernel;
};

// Compiles the nests, which compute the same, compares what they give and times them in turn: a table with a
// column for each, and the speed-up over the first.
std::string time_kernels(const std::vector<NamedKernel>& kernels, const std::map<std::string, int64_t>& sizes,
                         int threads);

}  // namespace tenon::cli
