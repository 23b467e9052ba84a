// compile_here.h — how tests compile where they do not say otherwise: for this machine.
#pragma once

#include "compiler/compile.h"

namespace tenon {

inline compiler::CompileContext here() {
  return {.target = this_machine(), .cache = codegen::default_cache()};
}

inline compiler::CompileContext without_cache() { return {.target = this_machine()}; }

}  // namespace tenon
