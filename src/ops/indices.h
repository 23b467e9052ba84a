// indices.h — from indices to places in memory. Gathering reads the places that scattering writes, so both
// share this.
#pragma once

#include "ir/graph.h"
#include "tensor/tensor.h"

namespace tenon {

// Which elements of a tensor some indices name: runs of `run` consecutive elements that begin at `offsets`.
// All of them together, in this order, form a tensor of `extents`.
struct Places {
  Extents extents;
  int64_t run = 1;
  std::vector<int64_t> offsets = {};
};

// Indices count from the front, or from the end when negative. One that is out of range is a user_error
// naming the op, as is a shape that does not fit; the infer functions below say the same of types.

// `indices` each name a slice of x across `axis`.
Places places_along_axis(std::string_view op, const Extents& x, const Tensor& indices, int64_t axis);
// `indices` has the rank of x: each names the element of x at its own place, but for the position along
// `axis`.
Places places_of_elements(std::string_view op, const Extents& x, const Tensor& indices, int64_t axis);
// The last dimension of `indices` holds tuples, each of which indexes the leading dimensions of x after the
// first `batch_dims`, which both have in common.
Places places_of_tuples(std::string_view op, const Extents& x, const Tensor& indices, int64_t batch_dims);

// The elements of x there.
Tensor read_places(const Tensor& x, const Places& places);

// All three, for an op that is told which; the last argument is the axis or the number of batch dimensions.
using FindPlaces = Places (*)(std::string_view op, const Extents& x, const Tensor& indices,
                              int64_t parameter);
// The places in operand x that operand indices of n names, when that is known before running. Nothing when an
// index is out of range: running the graph will say so, if it ever gets there.
std::optional<Places> known_places(const Node& n, FindPlaces find, int64_t parameter);

// The shapes of those places, for operands x and indices of n.
Shape shape_along_axis(const Node& n, int64_t axis);
Shape shape_of_elements(const Node& n, int64_t axis);
Shape shape_of_tuples(const Node& n, int64_t batch_dims);

// `index` counted from the front along dimension `axis` of this size.
int64_t checked_index(std::string_view op, int64_t index, int64_t size, int64_t axis);

}  // namespace tenon
