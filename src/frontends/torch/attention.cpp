// attention.cpp — PyTorch's scaled dot-product attention, in the forms that exports have.
#include "ops/attention.h"

#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/precision.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "tensor/wide.h"

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

// What attention is of, in four dimensions.
struct Attention {
  Value q, k, v;
  int64_t rank;
  AttentionOptions options = {};

  explicit Attention(const NodeView& n)
      : q(n.tensor("query")), k(n.tensor("key")), v(n.tensor("value")), rank(n.rank_of(q)) {
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
    options.scale = scale_of(n, q);
    options.softmax_dtype = q.dtype() == DType::F64 ? DType::F64 : DType::F32;
    options.window_after = n.flag("is_causal", false) ? 0 : -1;
    if (Value mask = n.maybe_tensor(n.has("attn_bias") ? "attn_bias" : "attn_mask")) {
      if (mask.dtype() != DType::Bool)
        mask = in_dtype(mask, q.dtype());
      options.mask = rank == 3 && n.rank_of(mask) == 3 ? unsqueeze(mask, {1}) : mask;
    }
    q = in_four(q);
    k = in_four(k);
    v = in_four(v);
  }

  Value y() const {
    const Value y = attention(q, k, v, options);
    if (rank == 4)
      return y;
    return rank == 3 ? squeeze(y, {1}) : squeeze(y, {0, 1});
  }
  // log(sum(exp(scores))) of each query, in f32 at least.
  Value log_sum_exp() const {
    return reduce_log_sum_exp(widened(attention_scores(q, k, "biased", options)), {3});
  }
};

Value attend(const NodeView& n) { return Attention(n).y(); }

std::vector<Value> convert_attention(const NodeView& n) { return {attend(n)}; }
// With the scores' softmax, which nobody looks at.
std::vector<Value> convert_math(const NodeView& n) {
  n.ignore("dropout_mask");
  return {attend(n), Value()};
}

// The kernels of PyTorch give what their gradient needs beside the result, first of all the logarithm of what
// the softmax divides by.
std::vector<Value> convert_flash_for_cpu(const NodeView& n) {
  const Attention attention(n);
  return {attention.y(), attention.log_sum_exp()};
}

// What we have no use for, as the file says that it is: states of random numbers, and masks for debugging.
Value placeholder_result(const NodeView& n, size_t index) {
  const TensorMeta* meta = n.result_meta(index);
  if (meta == nullptr)
    return {};
  Extents extents;
  for (const SymInt& size : meta->sizes) {
    if (!size.is_constant())
      return {};
    extents.push_back(*size.constant());
  }
  return fill(int_vector(n.graph(), extents), filled(meta->dtype, {}, 0));
}

// One that has as many elements as the file says: some kernels give it for more queries than there are, …
Value as_declared(const NodeView& n, Value log_sum_exp) {
  const TensorMeta* meta = n.result_meta(1);
  if (meta == nullptr || meta->sizes.size() != 3 || provably_equal(meta->sizes[2], log_sum_exp.dim(2)))
    return log_sum_exp;
  const auto declared = meta->sizes[2].constant(), there = log_sum_exp.dim(2).constant();
  if (!declared || !there)
    throw unsupported("{}: a logsumexp of {} queries", n.op(), meta->sizes[2]);
  return pad(log_sum_exp, int_vector(n.graph(), {0, *declared - *there}), {2});  // … or none
}

std::vector<Value> convert_efficient(const NodeView& n) {
  const Attention attention(n);
  n.ignore("compute_log_sumexp");
  return {attention.y(), as_declared(n, attention.log_sum_exp()), placeholder_result(n, 2),
          placeholder_result(n, 3)};
}

// output, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, and three that have no meaning here
std::vector<Value> convert_flash(const NodeView& n) {
  const Attention attention(n);
  for (std::string_view name : {"compute_log_sumexp", "return_debug_mask"})
    n.ignore(name);
  const auto length = [](Value x) { return reshape(size_along(x, 2), std::vector<int64_t>{}); };
  Value log_sum_exp = attention.log_sum_exp();
  if (const TensorMeta* meta = n.result_meta(1); meta != nullptr && meta->sizes.size() == 4)
    log_sum_exp = unsqueeze(log_sum_exp, {3});
  return {attention.y(),
          log_sum_exp,
          Value(),
          Value(),
          length(attention.q),
          length(attention.k),
          placeholder_result(n, 6),
          placeholder_result(n, 7),
          placeholder_result(n, 8)};
}

// Scores are computed again, so that only query, key, value and mask count.
Convert backward(std::string_view seed, bool of_bias = false) {
  return [=](const NodeView& n) {
    for (std::string_view name :
         {"out", "logsumexp", "cum_seq_q", "cum_seq_k", "max_q", "max_k", "philox_seed", "philox_offset"})
      n.ignore(name);
    GradientInputs inputs;
    for (std::string_view name : {"query", "key", "value"})
      inputs.emplace_back(name, n.tensor(name));
    if (of_bias && n.has("attn_bias"))
      inputs.emplace_back("attn_bias", n.tensor("attn_bias"));
    std::vector<Value> all = gradients(n, convert_attention, inputs, {n.tensor(seed)});
    if (!of_bias)
      return all;
    all.resize(4);
    const std::vector<bool> wanted = n.flags("grad_input_mask");
    for (size_t i = 0; i < std::min(wanted.size(), all.size()); ++i)
      if (!wanted[i])
        all[i] = Value();
    return all;
  };
}

}  // namespace

const Conversions& attention_conversions() {
  static const Conversions conversions = {
      {"_scaled_dot_product_attention_math", convert_math},
      {"_scaled_dot_product_cudnn_attention", convert_flash},
      {"_scaled_dot_product_cudnn_attention_backward", backward("grad_out")},
      {"_scaled_dot_product_efficient_attention", convert_efficient},
      {"_scaled_dot_product_efficient_attention_backward", backward("grad_out_", true)},
      {"_scaled_dot_product_flash_attention", convert_flash},
      {"_scaled_dot_product_flash_attention_backward", backward("grad_out")},
      {"_scaled_dot_product_flash_attention_for_cpu", convert_flash_for_cpu},
      {"_scaled_dot_product_flash_attention_for_cpu_backward", backward("grad_out")},
      {"scaled_dot_product_attention", convert_attention},
  };
  return conversions;
}

}  // namespace tenon::torch
