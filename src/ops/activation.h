// activation.h — activation functions worth knowing by name. As one op each rounds once, also in f16 and
// bf16.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& activation_ops();

Value gelu(Value x);
Value gelu_tanh(Value x);               // the approximation with tanh
Value silu(Value x, double alpha = 1);  // x · sigmoid(alpha · x), also called swish
Value softplus(Value x);
Value mish(Value x);
Value leaky_relu(Value x, double alpha);
Value hard_sigmoid(Value x, double alpha, double beta);
Value hard_swish(Value x);

// What the three relatives of elu differ in: elu(x, alpha), selu and celu are all this formula.
struct EluScales {
  double alpha = 1, scale = 1, input_scale = 1;
};
Value elu(Value x, const EluScales& scales);

}  // namespace tenon
