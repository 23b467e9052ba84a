// determinant.h — the determinant of square matrices.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& determinant_ops();

Value determinant(Value x);

}  // namespace tenon
