// rewrite_checks.h — every rewrite by itself, on what flows there when the model runs once. What stood there
// and what stands there now are computed from the same values, and must agree as closely as the class of the
// rewrite says. So a model that takes minutes to run is run once, and not once for each pass.
#pragma once

#include "verify/cut_out.h"
#include "verify/verify.h"

namespace tenon {

// Whether what a rewrite made is what stood there, as far as its class says: bit-exact means the same bits;
// changes-precision, within eight rounding steps of bf16; all else within the tolerance, or eight rounding
// steps of the dtype where those are wider, wherever that which stood there was finite. Unknown where both
// are nearly zero.
Check compare_by_class(const Datum& actual, const Datum& expected, Numerics numerics, double tolerance);

struct RewriteCheck {
  Application application;
  Check numbers;
};

struct RewriteChecksOptions {
  double tolerance = 1e-4;
  // Told of each rewrite before it is checked.
  std::function<void(const Application&)> before_check = nullptr;
};

// Checks every rewrite that `rewrite` makes in the graph, under the journal, in their order. `recorded` is
// what flows through the graph before. Those that follow one that cannot be run are `unchecked`.
std::vector<RewriteCheck> check_rewrites(const Graph& graph, RecordedValues recorded, Journal& journal,
                                         const std::function<void()>& rewrite,
                                         const RewriteChecksOptions& options = {});

// What the rewrites of one pass say together.
Check join_checks(std::span<const RewriteCheck> rewrites);

}  // namespace tenon
