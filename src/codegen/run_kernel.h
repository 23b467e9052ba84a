// run_kernel.h — one kernel, compiled for this machine and run: what `tenon loops` shows, and tests compare.
#pragma once

#include "loops/kernel.h"
#include "target/target.h"
#include "tensor/tensor.h"

namespace tenon::codegen {

// Whether code can be generated for it: it calls no routine, and has dtypes that machines compute with.
bool can_compile(const loops::Kernel& kernel);

// The outputs, from the inputs in their order, on this thread alone. `sizes` says what all sizes of the
// kernel are. What the kernel does wrong is the user's fault where it is noticed; an index outside its buffer
// is not.
std::vector<Tensor> run_compiled(const loops::Kernel& kernel, const std::vector<Tensor>& inputs,
                                 const std::map<std::string, int64_t>& sizes, const Target& target);

}  // namespace tenon::codegen
