// join_loops.h — loops that do not need each other become one step, so that each can have a thread of its
// own: the two directions of a recurrent layer, say.
#pragma once

#include "runtime/step.h"

namespace tenon::compiler {

// Adds a step, beside the last one where both are loops that may run at once.
void add_host_step(runtime::HostStep step, const std::vector<runtime::Slot>& slots,
                   std::vector<runtime::Step>& steps);

}  // namespace tenon::compiler
