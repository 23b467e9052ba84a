// summary.h — a result in short: its type, its first elements, and how far they range.
#pragma once

#include <string>

#include "tensor/datum.h"

namespace tenon {

// f32[4] = [1, 2.5, nan, 0], from 0 to 2.5, with 1 NaN. Only the type, where there are no elements to show.
// The elements of a sequence follow line by line.
std::string summary(const Datum& datum);

}  // namespace tenon
