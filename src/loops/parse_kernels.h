// parse_kernels.h — a text of one kernel or several, read.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// All kernels of a text. What is wrong with one, or that two have one name, is the user's fault.
std::vector<Kernel> parse_kernels(std::string_view text);

}  // namespace tenon::loops
