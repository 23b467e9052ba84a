// compare_kernels.h — whether a loop nest still computes the same once it is rearranged.
#pragma once

#include "loops/kernel.h"
#include "tensor/tensor.h"

namespace tenon::cli {

// By the rule that the inputs of models are made by.
std::vector<Tensor> make_up_inputs(const loops::Kernel& kernel, const std::map<std::string, int64_t>& sizes);

// Runs both on the same inputs, interpreted and compiled, and says so: "Both compute the same, …". Results
// that differ by more than rounding explains are our bug.
std::string compare_kernels(const loops::Kernel& before, const loops::Kernel& after,
                            const std::map<std::string, int64_t>& sizes);

// That these outputs of a kernel are as expected, up to rounding; by how much they are off at most.
double check_outputs(const loops::Kernel& kernel, const std::vector<Tensor>& actual,
                     const std::vector<Tensor>& expected);

}  // namespace tenon::cli
