// attention.cpp — PyTorch's scaled dot-product attention, in the forms that exports have.
#include "ops/attention.h"

#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

// 1 / sqrt(size), unless the node says otherwise; where the size is not known, q is divided by its root
// instead.
double scale_of(const NodeView& n, Value& q) {
  if (n.has("scale"))
    return n.real("scale");
  if (const auto size = q.dim(-1).constant())
    return 1 / std::sqrt(static_cast<double>(*size));
  q = q / sqrt(cast(size_along(q, -1), q.dtype()));
  return 1;
}

// With dimensions of size 1 before all others, or as the second of three: [batch, heads, sequence, size].
Value in_four(Value x) {
  switch (x.rank()) {
    case 2:
      return unsqueeze(x, {0, 1});
    case 3:
      return unsqueeze(x, {1});
    default:
      return x;
  }
}

Value attend(const NodeView& n) {
  Value q = n.tensor("query"), k = n.tensor("key"), v = n.tensor("value");
  const int64_t rank = n.rank_of(q);
  if (rank < 2 || rank > 4 || n.rank_of(k) != rank || n.rank_of(v) != rank)
    throw unsupported("{}: query, key and value of the types {}, {} and {}", n.op(), q.type(), k.type(),
                      v.type());
  if (n.real("dropout_p", 0) != 0)
    throw unsupported("{}: dropout\n  hint: call model.eval() before the export", n.op());
  // Unless heads are shared by groups, they broadcast: one serves all.
  const bool grouped = n.flag("enable_gqa", false);
  for (Value shared : {k, v})
    if (!grouped && rank == 4 && !provably_equal(q.dim(1), shared.dim(1)) && shared.dim(1) != Dim(1))
      throw unsupported("{}: {} query heads and {} key heads", n.op(), q.dim(1), shared.dim(1));
  AttentionOptions options;
  options.scale = scale_of(n, q);
  options.softmax_dtype = q.dtype() == DType::F64 ? DType::F64 : DType::F32;
  options.window_after = n.flag("is_causal", false) ? 0 : -1;
  if (Value mask = n.maybe_tensor("attn_mask")) {
    if (mask.dtype() != DType::Bool)
      mask = in_dtype(mask, q.dtype());
    options.mask = rank == 3 && n.rank_of(mask) == 3 ? unsqueeze(mask, {1}) : mask;
  }
  const Value y = attention(in_four(q), in_four(k), in_four(v), options);
  if (rank == 4)
    return y;
  return rank == 3 ? squeeze(y, {1}) : squeeze(y, {0, 1});
}

std::vector<Value> convert_attention(const NodeView& n) { return {attend(n)}; }
// The others give what a gradient would need beside it.
std::vector<Value> convert_with_statistics(const NodeView& n) {
  n.ignore("return_debug_mask");
  n.ignore("dropout_mask");
  return {attend(n), Value()};
}

}  // namespace

const Conversions& attention_conversions() {
  static const Conversions conversions = {
      {"_scaled_dot_product_attention_math", convert_with_statistics},
      {"_scaled_dot_product_flash_attention_for_cpu", convert_with_statistics},
      {"scaled_dot_product_attention", convert_attention},
  };
  return conversions;
}

}  // namespace tenon::torch
