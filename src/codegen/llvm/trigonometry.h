// trigonometry.h — the functions of math.h that deal with angles.
#pragma once

#include "codegen/llvm/lanes.h"

namespace tenon::codegen {

// These three may end in another block.
Lanes emit_sin(Lanes x);
Lanes emit_cos(Lanes x);
Lanes emit_tan(Lanes x);

Lanes emit_asin(Lanes x);
Lanes emit_acos(Lanes x);
Lanes emit_atan(Lanes x);

}  // namespace tenon::codegen
