// other_choices.h — how else a sum of products may be computed, for those who measure what is best.
#pragma once

#include <string>

#include "fusion/stage.h"

namespace tenon {

// What was chosen for a sum of products, by estimate or by whoever asked, in full; empty where nothing of it
// can be chosen. The stage is as it is handed to build_nest.
ContractionChoice choice_made(const Stage& sum, const Target& target);

// A few others that promise most: other algorithms, rows in blocks or not, and blocks that fill the registers
// in other ways, without spilling.
std::vector<ContractionChoice> other_choices(const Stage& sum, const Target& target);

// "tiles of 4, 7 rows x 2 parts", "13 rows x 2 vectors, rows in blocks"; for people.
std::string describe(const ContractionChoice& choice);

}  // namespace tenon
