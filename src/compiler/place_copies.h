// place_copies.h — the copies between host and device that a program needs where kernels have memory of their
// own.
#pragma once

#include "runtime/program.h"

namespace tenon::compiler {

// Inserts a copy before the first step that needs a value where it is not, and copies outputs to the caller
// at the end. Inputs come in the memory of the host; constants are in both.
void place_copies(runtime::Program& program);

}  // namespace tenon::compiler
