// loads.h — which elements a formula reads for sure.
#pragma once

#include "loops/scalar.h"

namespace tenon::schedule::cuda {

// Calls f for each load that is read whatever holds: not for those in what a select chooses, or a require
// allows, which may be outside their buffers.
void for_each_certain_load(const loops::Scalar& formula, const std::function<void(const loops::Scalar&)>& f);

}  // namespace tenon::schedule::cuda
