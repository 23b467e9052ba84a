// simplify_guards.h — conditions that need not be asked.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// Guards that always hold are opened, and what can never run is removed.
Kernel simplify_guards(const Kernel& kernel);

}  // namespace tenon::loops
