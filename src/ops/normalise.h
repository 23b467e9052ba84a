// normalise.h — normalisations: elements made to have mean 0 and variance 1 (or mean square 1) over some of
// their axes, then scaled and shifted.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& normalise_ops();

// Where an optional scale or bias is left out, pass an empty Value.
Value batch_norm(Value x, Value scale, Value bias, Value mean, Value variance, double epsilon);
Value layer_norm(Value x, Value scale, Value bias, int64_t axis, double epsilon);
Value rms_norm(Value x, Value scale, int64_t axis, double epsilon);
Value group_norm(Value x, Value scale, Value bias, int64_t groups, double epsilon);
Value instance_norm(Value x, Value scale, Value bias, double epsilon);

}  // namespace tenon
