// compile_targets.h — the processors that programs are compiled for to run elsewhere, by the names that
// compilers give them.
#pragma once

#include "target/target.h"

namespace tenon {

// "x86-64-v3", "sapphirerapids", "armv8.2+dotprod": a level or processor, and features that it may lack, in
// LLVM's spelling. Caches are those of a typical one. What is not there is a user_error that lists what is.
Target compile_target(std::string_view name);

}  // namespace tenon
