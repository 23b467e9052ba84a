// quantised.h — weights that are stored in fewer bits. To compute with them before the graph runs would keep
// the results in their full size.
#pragma once

#include "rewrite/rule.h"

namespace tenon {

// Whether a fixed value is made of quantised numbers.
bool is_quantised(Value value);
Condition is_not_quantised(const Pattern& w);

}  // namespace tenon
