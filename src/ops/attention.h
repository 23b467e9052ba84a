// attention.h — scaled dot-product attention, and the scores inside it.
//
// q is [batch, heads, queries, size], k [batch, key heads, keys, size], v [batch, key heads, keys, value
// size]; each key head serves as many query heads, one after the other, as there are times more of those.
//
//   scores = √scale q · √scale kᵀ    "raw"
//   scores = cap · tanh(scores/cap)  "capped", if there is a softcap
//   scores = scores + bias           "biased"
//   scores = softmax(scores)         "probabilities"; all zero where every key has a bias of -inf
//   y      = scores · v
//
// The bias is the sum of the mask (0 and -inf for true and false), -inf for keys outside the query's window,
// and -inf for keys from the batch's length on. Query i stands at key i + offset. Floats of 16 bits and fewer
// are rounded after every step.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& attention_ops();

struct AttentionOptions {
  double scale = 1;
  double softcap = 0;                // 0 for none
  DType softmax_dtype = DType::F32;  // the steps of the softmax round to this, if it has 16 bits or fewer
  Value mask = {};        // bool, or of the dtype of q; broadcasts to [batch, heads, queries, keys]
  bool pad_mask = false;  // keys beyond the mask's last dimension are masked, and that one does not broadcast
  int64_t window_before = -1, window_after = -1;  // how many keys on either side are seen; -1 for all
  Value offset = {};                              // i64, one or per batch; 0 if absent
  Value lengths = {};                             // i64[batch]
};

Value attention(Value q, Value k, Value v, const AttentionOptions& options);
// The scores at one stage of the way: "raw", "capped", "biased" or "probabilities".
Value attention_scores(Value q, Value k, std::string_view stage, const AttentionOptions& options);

}  // namespace tenon
