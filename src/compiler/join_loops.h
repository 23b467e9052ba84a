// join_loops.h — loops that do not need each other become one step, so that each can have a thread of its
// own: the two directions of a recurrent layer, say.
#pragma once

#include "runtime/step.h"

namespace tenon {

// Adds a step, beside the last one where both are loops that may run at once.
void add_host_step(HostStep step, const std::vector<Slot>& slots, std::vector<Step>& steps);

}  // namespace tenon
