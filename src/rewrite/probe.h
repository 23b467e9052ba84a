// probe.h — what a region computes, found out by running it. A formula can be written in any number of ways,
// and rearranging all of them into one is hard; but two short formulas that give the same for a few hundred
// numbers of all magnitudes, those at which either bends among them, are the same. So x·0.5·(1 + erf(x/√2))
// and 0.5·(x + x·erf(0.7071·x)) are both seen to be gelu(x).
#pragma once

#include <functional>
#include <optional>

#include "rewrite/region.h"

namespace tenon {

// A function, made of x and as many fixed values as the region has.
using Function = std::function<Value(Value x, const std::vector<Value>& fixed)>;

enum class Specials : bool { Ignored, Kept };  // whether it counts what becomes of NaN and infinities

// Whether a region computes this function of each element of x: as exactly as its numbers are in Exact
// precision, and within rounding in its own. Where it has NaN or infinities on the way, nothing is compared.
bool computes_elementwise(const UnaryRegion& region, const Function& function, Specials specials);

// What a function makes of the telling points of NestedProbes; nothing where it cannot be run.
std::vector<double> values_at_telling_points(const Function& function);

// Whether computes_elementwise may hold of a function that makes this of them. Cheap: it runs all regions of
// a root once, for all functions.
bool may_compute_elementwise(const UnaryRegion& region, std::span<const double> values);

// What an elementwise region makes of one number, in Exact precision.
double value_at(const UnaryRegion& region, double x);

// Whether it computes a function along these axes of x, which count from the front. Its fixed values must not
// vary along others.
bool computes_along(const UnaryRegion& region, const std::vector<int64_t>& axes, const Function& function);

// What a region along axes makes of rows [x, -x, 0, …] of a small x, and of these numbers in place of its
// fixed values: the first element of each row becomes y.
struct RowProbe {
  double x, y;
  int64_t length;
};
std::optional<RowProbe> probe_row(const UnaryRegion& region, const std::vector<int64_t>& axes,
                                  const std::vector<double>& fixed);

// The number or attribute of the region that `value` must be but for rounding errors; itself where there is
// none.
double nearest_number(const UnaryRegion& region, double value);

}  // namespace tenon
