// compile_here.h — how tests compile where they do not say otherwise: for this machine.
#pragma once

#include "compiler/compile.h"
#include "target/named_targets.h"

namespace tenon {

inline compiler::CompileContext here() {
  return {.target = this_machine(), .cache = codegen::default_cache()};
}

inline compiler::CompileContext without_cache() { return {.target = this_machine()}; }

// For a target by its name, the same on every host. Code for it may not run here: only what is scheduled is
// looked at.
inline compiler::CompileContext for_target(std::string_view name) { return {.target = target_named(name)}; }

}  // namespace tenon
