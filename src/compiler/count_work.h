// count_work.h — about how many elements a kernel computes, by which it is decided how many threads it is
// worth.
#pragma once

#include "codegen/phases.h"

namespace tenon {

// In one phase, that which computes the most; by what the sizes of the kernel stand for.
Dim count_work(const loops::Kernel& kernel, const std::vector<codegen::Phase>& phases,
               const std::map<std::string, Dim>& sizes);

}  // namespace tenon
