// polyhedra.h — a kernel as the polyhedral model sees it, in text: which runs its statements have (domains),
// when they happen (the schedule) and which have to wait for which (dependences), as integer sets and
// relations for all sizes at once.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// Statements S0, S1, … with their domains, the schedule and the dependences. Those that follow from others
// are left out: a run waits for the last write of what it reads, and for what happened to an element since
// its last write.
std::string show_polyhedra(const Kernel& kernel);

// The schedule of a kernel that was made from the stamped `before` (order.h): when the runs of its statements
// happen now. Statements that came since have numbers behind the others, and are listed.
std::string show_schedule(const Kernel& before, const Kernel& after);

}  // namespace tenon::loops
