// emit.h — a kernel as LLVM IR.
#pragma once

#include <llvm/IR/Module.h>

#include "loops/parallel_regions.h"
#include "target/target.h"

namespace tenon::codegen {

// Adds int64_t NAME(std::byte* const* buffers, const int64_t* sizes, std::byte* scratch, int64_t begin,
// int64_t end) to the module: the iterations of a region from begin to before end. The buffers are the
// kernel's inputs, then its outputs; the sizes stand in the order of Kernel::size_symbols. It returns 0, or 1
// where something that the kernel requires does not hold.
void emit(const loops::Kernel& kernel, const loops::ParallelRegion& region, const std::string& name,
          const Target& target, llvm::Module& module);

}  // namespace tenon::codegen
