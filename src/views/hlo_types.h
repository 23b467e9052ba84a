// hlo_types.h — XLA's names for types.
#pragma once

#include <string>

#include "ir/type.h"

namespace tenon {

std::string_view hlo_element(DType dtype);  // f32, s64, pred
std::string hlo_type(const Type& type);     // f32[1,4]; a size that is not known is ?
std::string hlo_tuple(const Types& types);  // (f32[1,4], s64[])

}  // namespace tenon
