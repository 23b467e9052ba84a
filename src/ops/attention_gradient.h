// attention_gradient.h — attention in simpler ops, and its gradient. The scores are computed again for the
// gradient, so that they need not be kept from the forward pass.
#pragma once

#include "ops/gradient.h"

namespace tenon {

std::vector<Value> decompose_attention(const Node& n);
std::vector<Value> decompose_attention_scores(const Node& n);
std::vector<Operand> grad_attention(const GradContext& n);
std::vector<Operand> grad_attention_scores(const GradContext& n);

}  // namespace tenon
