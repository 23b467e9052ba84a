// interpolate.h — values between the elements of a tensor: the weights of their neighbours.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// One neighbour along one dimension.
struct Tap {
  int64_t index;
  double weight;
};
using Taps = std::vector<Tap>;

enum class Filter : uint8_t { Nearest, Linear, Cubic };

// What attribute mode says: nearest, linear or cubic. Only numbers, in operand x, can be blended.
Filter filter_of(const Node& n);

// The neighbours of `position` and their weights, which add up to one; indices may lie outside the tensor.
// A filter stretched by a factor above 1 reaches that much further, so that a smaller image sees every
// element. `a` is the parameter of the cubic filter (Keys 1981): its slope at distance 1.
Taps taps_at(double position, Filter filter, double stretch = 1, double a = -0.75);

// The neighbours of `position` that are among `size` elements, for linear interpolation; all others count as
// zeros. NaN has none.
Taps taps_inside(double position, int64_t size);

// Σ weight · element over the neighbours in every dimension of a row-major block of elements.
double sample(const double* elements, const Extents& sizes, const std::vector<Taps>& taps);

}  // namespace tenon
