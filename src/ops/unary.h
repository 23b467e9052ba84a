// unary.h — elementwise functions of one tensor.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& unary_ops();

Value operator-(Value x);
Value abs(Value x);
Value sign(Value x);
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value reciprocal(Value x);
Value sin(Value x);
Value cos(Value x);
Value tan(Value x);
Value asin(Value x);
Value acos(Value x);
Value atan(Value x);
Value sinh(Value x);
Value cosh(Value x);
Value tanh(Value x);
Value asinh(Value x);
Value acosh(Value x);
Value atanh(Value x);
Value erf(Value x);
Value sigmoid(Value x);
Value relu(Value x);
Value floor(Value x);
Value ceil(Value x);
Value round(Value x);  // halves to even
Value logical_not(Value x);
Value is_nan(Value x);

}  // namespace tenon
