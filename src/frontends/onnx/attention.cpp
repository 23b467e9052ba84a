// attention.cpp — ONNX attention in its forms, and rotary position embedding.
#include "ops/attention.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/heads.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/linear.h"
#include "ops/linear_attention.h"
#include "ops/reshape.h"
#include "ops/rotary.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"

namespace tenon::onnx {
namespace {

// What was repeated along axes before its last `kept`, as models do for engines that do not broadcast.
Value before_repeats(Value value, int64_t kept) {
  if (!value || value.is_input() || !value.node()->is("broadcast"))
    return value;
  const Value x = value.node()->in("x");
  if (!x.shape().ranked() || !value.shape().ranked() || x.rank() != value.rank() || x.rank() < kept)
    return value;
  for (int64_t axis = -kept; axis < 0; ++axis)
    if (!provably_equal(x.dim(axis), value.dim(axis)))
      return value;
  return x;
}

std::vector<Value> convert_attention(const NodeView& n) {
  Value q = n.in(0), k = n.in(1), v = n.in(2);
  const bool packed = n.rank_of(q) == 3;
  if (n.rank_of(k) != q.rank() || n.rank_of(v) != q.rank() || (!packed && q.rank() != 4))
    throw user_error("Attention: Q, K and V have the ranks {}, {} and {}, but all must have 3, or all 4",
                     q.rank(), k.rank(), v.rank());
  if (packed) {
    q = split_heads(n, q, n.integer("q_num_heads"));
    k = split_heads(n, k, n.integer("kv_num_heads"));
    v = split_heads(n, v, n.integer("kv_num_heads"));
  }

  AttentionOptions options;
  options.softcap = n.real("softcap", 0);
  options.window_before = n.integer("left_window_size", -1);
  options.window_after = n.flag("is_causal", false) ? 0 : n.integer("right_window_size", -1);
  const bool windowed = options.window_before >= 0 || options.window_after >= 0;

  // The queries come after the keys of the past, or are the last of those that are no padding.
  const Value past_key = n.maybe(4), past_value = n.maybe(5);
  options.lengths = n.maybe(6);
  if (bool(past_key) != bool(past_value))
    throw user_error("Attention: past_key and past_value must be given together");
  if (past_key && past_key.shape().ranked() && past_key.rank() != 4)
    throw user_error("Attention: past_key is {}, but must have rank 4", past_key.type());
  if (windowed && past_key)
    options.offset = size_along(past_key, 2);
  else if (windowed && options.lengths)
    options.offset = options.lengths - size_along(q, 2);
  if (past_key) {
    k = concat({past_key, k}, 2);
    v = concat({past_value, v}, 2);
  }

  options.mask = before_repeats(n.maybe(3), 1);
  if (options.mask && options.mask.dtype() != DType::Bool)
    options.mask = in_dtype(options.mask, q.dtype());
  options.pad_mask = options.mask && n.opset() >= 24;
  options.scale = n.has("scale") ? n.real("scale") : default_scale(q);

  options.softmax_dtype = n.dtype("softmax_precision", q.dtype());
  const Value y = attention(q, k, in_dtype(v, q.dtype()), options);
  std::vector<Value> results = {packed ? merge_heads(y) : y, k, v};
  if (n.wants(3)) {
    constexpr std::string_view stages[] = {"raw", "capped", "biased", "probabilities"};
    const int64_t mode = n.integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3)
      throw user_error("Attention: qk_matmul_output_mode is {}, but must be 0 to 3", mode);
    results.push_back(attention_scores(q, k, stages[mode], options));
  }
  return results;
}

// The heads of `probabilities` that share a head of v become one, of more rows.
Value weigh_values(Value probabilities, Value v) {
  const auto heads = probabilities.dim(1).constant(), shared = v.dim(1).constant();
  if (provably_equal(probabilities.dim(1), v.dim(1)))
    return matmul(probabilities, v);
  if (!heads || !shared || *shared == 0 || *heads % *shared != 0)
    throw user_error("FlexAttention: {} query heads cannot share {} key heads evenly", probabilities.dim(1),
                     v.dim(1));
  return reshape_copying(matmul(reshape_copying(probabilities, {0, *shared, -1, 0}), v), {0, *heads, -1, 0});
}

// score_mod and prob_mod are formulas over the whole tensor of scores: they become part of the graph.
Value modify(const NodeView& n, std::string_view name, Value scores) {
  if (!n.has(name))
    return scores;
  Captures captures;
  const std::unique_ptr<Graph> region = n.region(n.graph_proto(name), {scores.type()}, captures);
  std::vector<Value> arguments = {scores};
  arguments.insert(arguments.end(), captures.outer.begin(), captures.outer.end());
  const std::vector<Value> results = n.graph().inline_graph(*region, arguments);
  if (results.size() != 1)
    throw user_error("FlexAttention: {} gives {} outputs, but one was wanted", name, results.size());
  return results.front();
}

std::vector<Value> convert_flex_attention(const NodeView& n) {
  Value q = n.in(0);
  const Value k = n.in(1), v = n.in(2);
  for (Value x : {q, k, v})
    if (n.rank_of(x) != 4)
      throw user_error("FlexAttention: {} has rank {}, but must have 4", x.type(), x.rank());
  AttentionOptions options;
  options.scale = n.has("scale") ? n.real("scale") : default_scale(q);
  if (!n.has("score_mod") && !n.has("prob_mod"))
    return {attention(q, k, v, options)};
  const DType precision = n.dtype("softmax_precision", q.dtype() == DType::F64 ? DType::F64 : DType::F32);
  const Value scores = cast(attention_scores(q, k, "raw", options), precision);
  const Value probabilities = modify(n, "prob_mod", softmax(modify(n, "score_mod", scores), -1));
  return {weigh_values(cast(probabilities, q.dtype()), v)};
}

std::vector<Value> convert_linear_attention(const NodeView& n) {
  const std::string rule = n.text("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta",
             delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear")
    throw user_error(
        "LinearAttention: update_rule is \"{}\", but must be linear, gated, delta or gated_delta", rule);
  const int64_t heads = n.integer("q_num_heads"), key_heads = n.integer("kv_num_heads");
  Value q = split_heads(n, n.in(0), heads);
  const Value k = split_heads(n, n.in(1), key_heads), v = split_heads(n, n.in(2), key_heads);
  LinearAttentionOptions options;
  options.state = n.maybe(3);
  if (gated)
    options.decay = split_heads(n, n.in(4), key_heads);
  if (delta)
    options.beta = unsqueeze(transpose(n.in(5), {0, 2, 1}), {3});
  options.scale = n.real("scale", 0);
  if (options.scale == 0)
    options.scale = default_scale(q);
  const LinearAttentionResults results = linear_attention(q, k, v, options);
  return {merge_heads(results.y), results.state};
}

std::vector<Value> convert_rotary_embedding(const NodeView& n) {
  const Value x = n.in(0);
  const bool packed = n.rank_of(x) == 3;
  if (!packed && x.rank() != 4)
    throw user_error("RotaryEmbedding: {} has rank {}, but must have 3 or 4", x.type(), x.rank());
  const int64_t turned = n.integer("rotary_embedding_dim", 0);
  const auto angles = [&](size_t index) {
    Value cache = before_repeats(n.in(index), 2);
    if (const Value positions = n.maybe(3))
      cache = gather(cache, positions, 0);
    const bool exact = cache.shape().ranked() && cache.rank() == 3 && cache.dim(2) == Dim(turned / 2);
    return turned > 0 && !exact ? slice(cache, 2, 0, turned / 2) : cache;
  };
  const Value split = packed ? split_heads(n, x, n.integer("num_heads")) : x;
  const Value cos = angles(1), sin = angles(2);
  const Value y = rotary(split, cos, sin, n.flag("interleaved", false));
  return {packed ? merge_heads(y) : y};
}

}  // namespace

const Conversions& attention_conversions() {
  static const Conversions conversions = {
      {"Attention", convert_attention},
      {"FlexAttention", convert_flex_attention, "ai.onnx.preview"},
      {"LinearAttention", convert_linear_attention},
      {"RotaryEmbedding", convert_rotary_embedding},
  };
  return conversions;
}

}  // namespace tenon::onnx
