// special.h — special functions of one tensor: the gamma function and its derivatives, the inverse of erf,
// Bessel functions.
#pragma once

#include "ops/registry.h"

namespace tenon {

const Family& special_ops();

}  // namespace tenon
