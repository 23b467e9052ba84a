// separate_gpu.h — how tests compile for a GPU with memory of its own, where there is none.
#pragma once

#include "compile_here.h"
#include "compiler/separate_device.h"

namespace tenon {

inline compiler::CompileContext for_gpu() { return on_separate_device(without_cache()); }

}  // namespace tenon
