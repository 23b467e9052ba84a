// linear.h — products of matrices.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& linear_ops();

struct Transposed {
  bool a = false, b = false;
};

Value matmul(Value a, Value b, Transposed transposed = {});

}  // namespace tenon
