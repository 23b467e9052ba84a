// control_gradient.h — the gradients of control flow: of a branch, and of loops run backwards.
//
// What a nested graph computed on its way is computed again when its gradient is, so that nothing is kept of
// it but the values that a loop carried from iteration to iteration.
#pragma once

#include "ops/gradient.h"

namespace tenon {

std::vector<Operand> grad_if(const GradContext& n);
std::vector<Operand> grad_while(const GradContext& n);
std::vector<Operand> grad_scan(const GradContext& n);

}  // namespace tenon
