// count_work.h — about how many elements a kernel computes, by which it is decided how many threads it is
// worth.
#pragma once

#include "loops/parallel_regions.h"

namespace tenon::compiler {

// In one region, that which computes the most; by what the sizes of the kernel stand for.
Dim count_work(const loops::Kernel& kernel, const std::vector<loops::ParallelRegion>& regions,
               const std::map<std::string, Dim>& sizes);

}  // namespace tenon::compiler
