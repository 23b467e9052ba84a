// interpret.h — runs a kernel as it is written, one element at a time: what faster code is compared with.
#pragma once

#include "loops/kernel.h"
#include "tensor/tensor.h"

namespace tenon::loops {

// Whether some of it is left to routines, which cannot be interpreted.
bool calls_routines(const std::vector<Statement>& body);

// The outputs, from the inputs in their order. What the kernel does wrong (an index outside its buffer, an
// element that is read before it is written, an input of another shape) is the user's fault, as kernels may
// come from files. There are no routines to call.
//
// `sizes` says what sizes of the kernel are; those that an input has by themselves need not be said. Loops
// whose iterations may run at once run backwards, so that iterations which need each other show.
std::vector<Tensor> interpret(const Kernel& kernel, const std::vector<Tensor>& inputs,
                              const std::map<std::string, int64_t>& sizes = {});

// The outputs of a kernel that need not write all of their elements: one of which some iterations were left
// out.
struct PartialOutput {
  Tensor elements;            // 0 where none was written
  std::vector<bool> written;  // in the order in which they lie
};
std::vector<PartialOutput> interpret_partly(const Kernel& kernel, const std::vector<Tensor>& inputs,
                                            const std::map<std::string, int64_t>& sizes = {});

}  // namespace tenon::loops
