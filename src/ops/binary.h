// binary.h — elementwise functions of two tensors, broadcast to each other, as operators where C++ has one.
//
// A number beside a tensor is a constant of the tensor's dtype: relu(x * 2.0 + 1.0).
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& binary_ops();

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator+(Value a, double b);
Value operator-(Value a, double b);
Value operator*(Value a, double b);
Value operator/(Value a, double b);
Value operator+(double a, Value b);
Value operator-(double a, Value b);
Value operator*(double a, Value b);
Value operator/(double a, Value b);
Value pow(Value base, Value exponent);
Value pow(Value base, double exponent);
Value mod(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value equal(Value a, Value b);
Value less(Value a, Value b);
Value less_equal(Value a, Value b);
Value greater(Value a, Value b);
Value greater_equal(Value a, Value b);
Value logical_and(Value a, Value b);
Value logical_or(Value a, Value b);

}  // namespace tenon
