// adopt.h — when something is faster than what there is.
#pragma once

#include <vector>

namespace tenon {

// How long something took in each run, in seconds.
using Times = std::vector<double>;

double fastest(const Times& times);
double median(const Times& times);

// Whether what was measured in turn with something else is so much faster that it takes its place: by 3 %,
// in the fastest run of each, and not slower in half of them.
bool is_adopted(const Times& before, const Times& after);

}  // namespace tenon
