// definition.h — how the elements of buffers are computed from those of others, before anyone decides in
// which order: what an op's lower says, and what fusion puts together.
//
//   y[i] = sum over k of a[i,k] * x[k]:   results y; axes i; reduced k; combine +; initial 0; values a[i,k] *
//   x[k]
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

struct Axis {
  std::string variable;
  Dim size;

  friend bool operator==(const Axis&, const Axis&) = default;
};

// Each result has one element for every point of the axes: its value there, or what the values over all
// points of the reduced axes combine to, starting from the initial one.
struct Definition {
  std::vector<Buffer> results;
  std::vector<Axis> axes, reduced;
  // Where the element of a point stands in each result: variables of axes, each once, and numbers added to
  // them. Where no point stands, the results are 0.
  std::vector<Scalar> at;
  std::string combine;                 // as in Assign; empty where nothing is reduced
  std::optional<Combine> own_combine;  // what that name means, where it is not built in
  std::vector<Scalar> initial;
  std::vector<Scalar> values;  // one for each result

  bool reduces() const { return !combine.empty(); }
};

// The variables of axes, as indices.
std::vector<Scalar> variables_of(const std::vector<Axis>& axes);

// The same without axes of size 1.
Definition without_unit_axes(Definition definition);

// Whether a loop variable or size stands in an index of the expression.
bool mentions(const Scalar& scalar, const std::string& variable);
// Whether it does so in the indices of loads only, if at all.
bool mentions_only_in_loads(const Scalar& scalar, const std::string& variable);

// Whether a formula goes on with an iteration of the outer axis where the iteration before ended with the
// last of the inner, so that both are one axis to it.
bool runs_on(const Scalar& scalar, const Axis& outer, const Axis& inner);

// The axis whose variable an index is; nothing where it is something else.
std::optional<size_t> axis_of(const std::vector<Axis>& axes, const Scalar& index);

// The expression with others for the loop variables in its indices; nothing where one that is no index itself
// would stand in arithmetic of indices.
std::optional<Scalar> substitute(const Scalar& scalar, const std::map<std::string, Scalar>& replacements);

}  // namespace tenon::loops
