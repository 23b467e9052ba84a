// adopt.h — when something is faster than what there is.
#pragma once

#include <vector>

namespace tenon {

// How long something took in each run, in seconds.
using Times = std::vector<double>;

// What became of them.
struct Timing {
  double fastest = 0, median = 0;
};

Timing timing_of(const Times& times);
// Of steps that take so long each. What disturbs one in a run need not disturb the others, so this says what
// they take undisturbed even where no run was.
Timing timing_of(const std::vector<const Times*>& steps);

// Whether what was measured in turn with something else is so much faster that it takes its place: by 3
// % at its fastest, and not slower in half of all runs.
bool is_adopted(const Timing& before, const Timing& after);

}  // namespace tenon
