// join_loops.h — independent loops become one step, so that each can have a thread of its own: the two
// directions of a recurrent layer, say.
#pragma once

#include "runtime/step.h"

namespace tenon::compiler {

// Appends a step, joined to the last one where both are independent loops.
void add_host_step(runtime::HostStep step, const std::vector<runtime::Slot>& slots,
                   std::vector<runtime::Step>& steps);

}  // namespace tenon::compiler
