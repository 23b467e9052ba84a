// polar.h — how far a point of the plane is from the origin, and in which direction.
#pragma once

#include "ir/graph.h"

namespace tenon::torch {

// The root of a² + b², whose squares may be too large where it is not.
Value length_of(Value a, Value b);
// The angle of the point (b, a), as atan2(a, b) orders them.
Value angle_of(Value a, Value b);

}  // namespace tenon::torch
