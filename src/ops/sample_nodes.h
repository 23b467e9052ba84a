// sample_nodes.h — values between the elements of images, as nodes: what the decompositions of the ops that
// sample share.
//
// Images are [count, channels, spatial…]. The positions along each spatial dimension are a tensor of floats,
// and these tensors broadcast to each other; what is seen there has the shape they broadcast to, with the
// channels behind it. So what is the same for all rows need not be computed for each.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ops/interpolate.h"

namespace tenon {

// One neighbour of every position along one dimension.
struct TapNodes {
  Value index;   // a whole number, as a float; it may lie outside
  Value weight;  // none: 1
  Value inside;  // whether there is such an element; none: the nearest one counts instead
};

// A neighbour in all dimensions.
struct NeighbourNodes {
  Value element;         // [positions…, channels]
  Value weight, inside;  // [positions…, 1], as those of taps
};

// As taps_at; at a position that is an element, the slope is that from above.
std::vector<TapNodes> taps_near(Value position, Filter filter);
// The same, of which those count as zeros that are not among the elements of a dimension of x. Where `near`
// does not hold there are none, even if the position is NaN.
std::vector<TapNodes> taps_among(Value position, Value near, Filter filter, Value x, int64_t axis);

// Every neighbour in x: images, by those along each spatial dimension. `image` says in which image: i64.
std::vector<NeighbourNodes> neighbours_in(Value x, Value image,
                                          const std::vector<std::vector<TapNodes>>& taps);

// Σ weight · element, in the dtype that floats are computed in; without weights in that of the elements.
Value blend(const std::vector<NeighbourNodes>& neighbours);

// [positions…, channels] with the channels moved to an axis before.
Value with_channels_at(Value x, int64_t axis);

// What looks at the dimensions of its operands one by one declines where their number is dynamic.
void check_ranks_known(const Node& n);

// The float that a decomposition computes in: f64 for f64, else f32.
DType working_dtype(DType dtype);

// The size of a dimension as a number.
Value length_along(Value x, int64_t axis, DType dtype);
// 0, 1, … along one axis of `rank`; the others have size 1. How many is an i64[1].
Value count_along_axis(Value count, int64_t axis, int64_t rank, DType dtype);
Value is_between(Value x, Value least, Value most);  // both count

}  // namespace tenon
