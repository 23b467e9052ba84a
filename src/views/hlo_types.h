// hlo_types.h — types and lists of dimensions as XLA writes them.
#pragma once

#include <string>

#include "ir/type.h"

namespace tenon {

std::string hlo_type(const Type& type);                     // f32[1,4]; a size that is not known is ?
std::string hlo_tuple(const Types& types);                  // (f32[1,4], s64[])
std::string hlo_list(const std::vector<int64_t>& numbers);  // {0,1}

}  // namespace tenon
