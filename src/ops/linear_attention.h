// linear_attention.h — attention without a softmax: a state that each token is written to and read from.
//
// q is [batch, heads, steps, size], k [batch, key heads, steps, size], v [batch, key heads, steps, value
// size]; a state is a matrix [size, value size] per batch and key head, zero at first unless given. Each key
// head serves as many query heads, one after the other, as there are times more of those. For every step:
//
//   state = exp(decay) · state                    if there is a decay, per row of the state
//   write = v                                     or, if there is a beta,
//   write = beta · (v - stateᵀ k)                 what the state does not yet say of k
//   state = state + k ⊗ write
//   y     = scale · stateᵀ q
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& linear_attention_ops();

struct LinearAttentionOptions {
  double scale = 1;
  Value state = {};
  Value decay = {};  // broadcasts to [batch, key heads, steps, size]
  Value beta = {};   // broadcasts to [batch, key heads, steps, 1]
};

struct LinearAttentionResults {
  Value y, state;
};

LinearAttentionResults linear_attention(Value q, Value k, Value v, const LinearAttentionOptions& options);

}  // namespace tenon
