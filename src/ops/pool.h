// pool.h — what a window sliding over each channel of an image sees, as one number: its greatest, its mean,
// its norm.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& pool_ops();

}  // namespace tenon
