// string.h — ops on text: joining, splitting, cleaning and matching strings, and counting n-grams.
#pragma once

#include "ops/registry.h"

namespace tenon {

const Family& string_ops();

}  // namespace tenon
