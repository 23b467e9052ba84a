// reuse_in_place.h — results that take the place of what they are made of.
#pragma once

#include "loops/kernel.h"
#include "runtime/step.h"

namespace tenon::compiler {

// Where a kernel computes each element of its only result from those at the same index of a buffer without
// later users, the result takes that buffer's memory. `kernels` are those of the steps; null for steps that
// are none.
void reuse_in_place(std::vector<runtime::Slot>& slots, const std::vector<runtime::Step>& steps,
                    const std::vector<const loops::Kernel*>& kernels, const std::vector<size_t>& outputs);

// The same of outputs and inputs of a program, whose memory is the caller's: for each output, the inputs in
// whose memory it may lie, by their numbers.
std::vector<std::vector<size_t>> overwritable_inputs(const std::vector<runtime::Slot>& slots,
                                                     const std::vector<runtime::Step>& steps,
                                                     const std::vector<const loops::Kernel*>& kernels,
                                                     const std::vector<size_t>& outputs);

}  // namespace tenon::compiler
