// check.h — what can be wrong with a kernel, and where.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

struct Problem {
  size_t part;  // inputs, outputs, combines and statements are counted in the order of the text, from 0
  std::string text;
  bool is_too_large = false;  // a size or index, for `Dim` to write it down
};

std::vector<Problem> find_problems(const Kernel& kernel);

}  // namespace tenon::loops
