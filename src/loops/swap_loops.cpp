#include "loops/swap_loops.h"

#include "loops/edit.h"

namespace tenon::loops {
namespace {

// Only iterations of a loop stay for which the condition is 0 or more; false where there are no bounds for
// that.
bool limit(Loop& loop, const Dim& condition) {
  const Dim variable = Dim::symbol(loop.variable);
  const std::optional<int64_t> growth =
      (condition.substitute({{loop.variable, variable + 1}}) - condition).constant();
  if (!growth)
    return false;
  const Dim rest = condition - Dim(*growth) * variable;
  if (rest.mentions(loop.variable))
    return false;
  if (*growth > 0)
    loop.begin = max(loop.begin, ceil_div(Dim(0) - rest, *growth));
  else if (*growth < 0)
    loop.end = min(loop.end, floor_div(rest, -*growth) + 1);
  return true;
}

}  // namespace

void swap_loops(Loop& outer, Loop& inner) {
  if (inner.begin.mentions(outer.variable) || inner.end.mentions(outer.variable)) {
    const Dim variable = Dim::symbol(inner.variable);
    Loop limited = outer;
    // Conditions without the outer variable hold wherever the inner loop will run.
    bool can = outer.step == 1 && inner.step == 1;
    for (const Dim& bound : {variable - inner.begin, inner.end - 1 - variable})
      for (const Dim& condition : minima_of(bound))
        can = can && limit(limited, condition);
    if (!can)
      throw declined("the bounds of {} depend on {}, which would stand within it", inner.variable,
                     outer.variable);
    inner.begin = least(inner.begin, {outer});
    inner.end = largest(inner.end - 1, {outer}) + 1;
    outer = std::move(limited);
  }
  std::swap(outer, inner);
}

}  // namespace tenon::loops
