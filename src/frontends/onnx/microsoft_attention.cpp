// microsoft_attention.cpp — attention in the forms of ONNX Runtime's own ops (com.microsoft).
#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/heads.h"
#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/rotary.h"
#include "ops/select.h"
#include "ops/slice.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// Inputs and attributes of which only the default is converted.
void refuse_inputs(const NodeView& n, std::initializer_list<std::pair<size_t, std::string_view>> inputs) {
  for (const auto& [index, name] : inputs)
    if (n.maybe(index))
      throw unsupported("{}: its input {}", n.op_type(), name);
}
void refuse_flags(const NodeView& n, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names)
    if (n.integer(name, 0) != 0)
      throw unsupported("{}: attribute {} is {}", n.op_type(), name, n.integer(name));
}

void check_rank(const NodeView& n, Value x, int64_t rank) {
  if (n.rank_of(x) != rank)
    throw user_error("{}: {} has rank {}, but must have {}", n.op_type(), x.type(), x.rank(), rank);
}

Value number(const NodeView& n, DType dtype, double value) { return scalar(n.graph(), dtype, value); }

// 0, 1, … before `count`, an i64[1].
Value count_up(const NodeView& n, Value count) {
  return range(number(n, DType::I64, 0), squeeze(count, {0}), number(n, DType::I64, 1));
}

double scale_of(const NodeView& n, Value& q) {
  const double scale = n.real("scale", 0);
  return scale != 0 ? scale : default_scale(q);
}

// --- attention with one past for all

// Which keys a mask shows: one number for each key, for each query and key, or how many there are, and from
// where on. As what is added to scores.
Value mask_bias(const NodeView& n, Value mask, Value k, DType dtype) {
  const int64_t rank = n.rank_of(mask);
  Value seen;
  if (rank == 2 || rank == 3) {
    seen = greater(mask, number(n, mask.dtype(), 0));
  } else if (rank == 1 && provably_equal(mask.dim(0), k.dim(0))) {
    seen = less(count_up(n, size_along(k, 2)), unsqueeze(cast(mask, DType::I64), {1}));
  } else if (rank == 1 && provably_equal(mask.dim(0), k.dim(0) * 2)) {
    const Value bounds = reshape(cast(mask, DType::I64), {2, -1, 1}), keys = count_up(n, size_along(k, 2));
    const auto bound = [&](int64_t index) { return squeeze(slice(bounds, 0, index, index + 1), {0}); };
    seen = logical_and(less(keys, bound(0)), greater_equal(keys, bound(1)));
  } else {
    throw unsupported("{}: a mask {} for keys {}", n.op_type(), mask.type(), k.type());
  }
  const Value bias = where(seen, number(n, dtype, 0), number(n, dtype, n.real("mask_filter_value", -10000)));
  return unsqueeze(bias, rank == 3 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2});
}

struct Heads {
  Value q, k, v;                   // [batch, heads, sequence, size]
  Value past_k = {}, past_v = {};  // the same
  Value mask = {}, bias = {};
};

// The attended values, and the keys and values with those of the past in front.
std::vector<Value> attend(const NodeView& n, Heads heads) {
  AttentionOptions options;
  if (bool(heads.past_k) != bool(heads.past_v))
    throw user_error("{}: past keys and values must be given together", n.op_type());
  if (heads.past_k) {
    check_rank(n, heads.past_k, 4);
    check_rank(n, heads.past_v, 4);
  }
  if (n.flag("unidirectional", false)) {
    // ONNX Runtime shows all keys to the last query, which then are more than came before it.
    if (heads.q.dim(2).is_constant() && heads.k.dim(2).is_constant() && heads.q.dim(2) != heads.k.dim(2))
      throw unsupported("{}: {} queries of {} keys, unidirectional", n.op_type(), heads.q.dim(2),
                        heads.k.dim(2));
    options.window_after = 0;
    if (heads.past_k)
      options.offset = size_along(heads.past_k, 2);
  }
  if (heads.past_k) {
    heads.k = concat({heads.past_k, heads.k}, 2);
    heads.v = concat({heads.past_v, heads.v}, 2);
  }
  options.scale = scale_of(n, heads.q);
  options.softmax_dtype = heads.q.dtype();
  options.mask = heads.bias;
  if (heads.mask) {
    const Value bias = mask_bias(n, heads.mask, heads.k, heads.q.dtype());
    options.mask = options.mask ? options.mask + bias : bias;
  }
  return {merge_heads(attention(heads.q, heads.k, heads.v, options)), heads.k, heads.v};
}

// What is left where all of q, k and v stand side by side: [batch, sequence, q + k + v].
std::vector<Value> attend_packed(const NodeView& n, Value packed, Value past, Value mask, Value bias) {
  refuse_flags(n, {"do_rotary", "past_present_share_buffer"});
  check_rank(n, packed, 3);
  if (past)
    check_rank(n, past, 5);
  std::vector<int64_t> sizes = n.integers("qkv_hidden_sizes", {});
  const auto width = packed.dim(2).constant();
  if (sizes.empty() && !width)
    throw unsupported("{}: the width of its weights must be known", n.op_type());
  if (sizes.empty())
    sizes.assign(3, *width / 3);
  if (sizes.size() != 3)
    throw user_error("{}: qkv_hidden_sizes has {} elements, but must have 3", n.op_type(), sizes.size());
  const std::vector<Value> parts = split(packed, sizes, 2);
  const int64_t count = n.integer("num_heads");
  const auto past_part = [&](int64_t index) {
    return past ? squeeze(slice(past, 0, index, index + 1), {0}) : past;
  };
  const std::vector<Value> results = attend(n, {.q = split_heads(n, parts[0], count),
                                                .k = split_heads(n, parts[1], count),
                                                .v = split_heads(n, parts[2], count),
                                                .past_k = past_part(0),
                                                .past_v = past_part(1),
                                                .mask = mask,
                                                .bias = bias});
  if (!n.wants(1))
    return {results[0]};
  return {results[0], concat({unsqueeze(results[1], {0}), unsqueeze(results[2], {0})}, 0)};
}

std::vector<Value> convert_attention(const NodeView& n) {
  refuse_inputs(n, {{6, "past_sequence_length"}});
  const Value product = matmul(n.in(0), n.in(1)), bias = n.maybe(2);
  return attend_packed(n, bias ? product + bias : product, n.maybe(4), n.maybe(3), n.maybe(5));
}

std::vector<Value> convert_qattention(const NodeView& n) {
  const std::vector<Value> product =
      find_conversion(kDomain, "MatMulIntegerToFloat")
          ->convert(n.with({n.in(0), n.in(1), n.in(3), n.in(4), n.maybe(6), n.maybe(7), n.in(2)}, 1));
  return attend_packed(n, product.front(), n.maybe(8), n.maybe(5), {});
}

// Keys and values may come in heads already: then they are those of another sequence, without bias.
std::vector<Value> convert_multi_head_attention(const NodeView& n) {
  refuse_inputs(n, {{8, "past_sequence_length"}, {9, "cache_indirection"}});
  const int64_t count = n.integer("num_heads");
  if (!n.maybe(1) || !n.maybe(2) || n.rank_of(n.in(1)) == 5)
    throw unsupported("MultiHeadAttention: queries, keys and values in one tensor");
  const bool in_heads = n.rank_of(n.in(1)) == 4;
  check_rank(n, n.in(0), 3);
  for (size_t i = 1; i < 3; ++i)
    check_rank(n, n.in(i), in_heads ? 4 : 3);
  std::vector<Value> parts = {n.in(0), n.in(1), n.in(2)};
  if (const Value bias = n.maybe(3)) {
    std::vector<int64_t> sizes;
    for (size_t i = 0; i < 3; ++i) {
      const Dim width = in_heads && i > 0 ? parts[i].dim(1) * parts[i].dim(3) : parts[i].dim(2);
      if (!width.constant())
        throw unsupported("MultiHeadAttention: a bias for {}, whose width must be known", parts[i].type());
      sizes.push_back(*width.constant());
    }
    const std::vector<Value> biases = split(bias, sizes, 0);
    for (size_t i = 0; i < (in_heads ? 1 : 3); ++i)
      parts[i] = parts[i] + biases[i];
  }
  const auto key_heads = [&](Value x) { return in_heads ? x : split_heads(n, x, count); };
  return attend(n, {.q = split_heads(n, parts[0], count),
                    .k = key_heads(parts[1]),
                    .v = key_heads(parts[2]),
                    .past_k = n.maybe(6),
                    .past_v = n.maybe(7),
                    .mask = n.maybe(4),
                    .bias = n.maybe(5)});
}

// --- attention with a past of its own length for each sequence

// Rows `positions`, i64[batch, length], of what lies along axis 2 of x, [batch, heads, rows, size].
Value rows_of_each(const NodeView& n, Value x, Value positions) {
  const Value batches = size_along(x, 0), heads = size_along(x, 1), rows = size_along(x, 2);
  const Value batch = unsqueeze(count_up(n, batches), {1}), head = count_up(n, heads);
  const Value firsts = unsqueeze((batch * heads + head) * rows, {2});  // [batch, heads, 1]
  const Value all = reshape(x, concat({int_vector(n.graph(), {-1}), size_along(x, 3)}, 0));
  return gather(all, firsts + unsqueeze(positions, {1}), 0);
}

// A past that may have room behind its first `lengths` rows, and the new rows put there: as many rows as the
// past has, or as there are in all, which are no more than both have.
Value append_rows(const NodeView& n, Value past, Value x, Value lengths, Value total) {
  const Value room = size_along(past, 2), added = size_along(x, 2), one = int_vector(n.graph(), {1});
  const Value row = count_up(n, maximum(room, minimum(total, room + added))),
              before = unsqueeze(lengths, {1});
  const Value place =
      where(less(row, before), minimum(row, room - one), room + minimum(row - before, added - one));
  const Value joined = rows_of_each(n, concat({past, x}, 2), place);
  const Value filled = unsqueeze(less(row, before + added), {1, 3});
  return where(filled, joined, number(n, x.dtype(), 0));
}

// The rows of a table of angles for positions i64[batch, sequence].
Value angles(const NodeView& n, Value table, Value positions) {
  check_rank(n, table, 2);
  check_rank(n, positions, 2);
  return gather(table, positions, 0);
}

constexpr int64_t kMostHeads = 1 << 20;

// Where rows of queries and keys of as many heads stand side by side, they are told apart.
std::vector<Value> separate(const NodeView& n, int64_t heads, int64_t key_heads) {
  if (heads < 1 || key_heads < 1 || heads > kMostHeads || key_heads > kMostHeads)
    throw user_error("GroupQueryAttention: num_heads is {}, and kv_num_heads {}", heads, key_heads);
  if (n.maybe(1) || n.maybe(2))
    return {n.in(0), n.in(1), n.in(2)};
  const auto width = n.rank_of(n.in(0)) == 3 ? n.in(0).dim(2).constant() : std::nullopt;
  if (!width || *width % (heads + 2 * key_heads) != 0)
    throw user_error("GroupQueryAttention: {} does not divide into {} heads and 2 times {}", n.in(0).type(),
                     heads, key_heads);
  const int64_t size = *width / (heads + 2 * key_heads);
  return split(n.in(0), {heads * size, key_heads * size, key_heads * size}, 2);
}

std::vector<Value> convert_group_query_attention(const NodeView& n) {
  refuse_inputs(
      n, {{11, "head_sink"}, {12, "k_scale"}, {13, "v_scale"}, {14, "q_norm_weight"}, {15, "k_norm_weight"}});
  for (std::string_view name : {"k_quant_type", "v_quant_type"})
    if (n.text(name, "NONE") != "NONE")
      throw unsupported("GroupQueryAttention: a cache in bytes");
  refuse_flags(n, {"qk_output", "sliding_window_cache"});
  if (n.integer("smooth_softmax", 0) > 0)
    throw unsupported("GroupQueryAttention: smooth_softmax");
  const int64_t heads = n.integer("num_heads"), key_heads = n.integer("kv_num_heads");
  const std::vector<Value> parts = separate(n, heads, key_heads);
  Value q = split_heads(n, parts[0], heads), k = split_heads(n, parts[1], key_heads),
        v = split_heads(n, parts[2], key_heads);

  // A sequence has seqlens_k + 1 keys, the last of which are new; in a prompt all are.
  const Value lengths = cast(n.in(5), DType::I64) + 1, count = size_along(q, 2);
  const Value total = reshape(cast(n.in(6), DType::I64), {1});
  const Value past_k = n.maybe(3), past_v = n.maybe(4);
  if (bool(past_k) != bool(past_v))
    throw user_error("GroupQueryAttention: past_key and past_value must be given together");
  const Value none = int_vector(n.graph(), {0});
  const Value before = reshape(where(equal(total, count), none, lengths - count), {-1});  // i64[batch]

  if (n.flag("do_rotary", false)) {
    const Value given = n.maybe(9);
    const Value positions = given ? given : unsqueeze(before, {1}) + count_up(n, count);
    const Value cos = angles(n, n.in(7), positions), sin = angles(n, n.in(8), positions);
    const bool interleaved = n.flag("rotary_interleaved", false);
    q = rotary(q, cos, sin, interleaved);
    k = rotary(k, cos, sin, interleaved);
  }
  if (past_k) {
    check_rank(n, past_k, 4);
    check_rank(n, past_v, 4);
    k = append_rows(n, past_k, k, before, total);
    v = append_rows(n, past_v, v, before, total);
  }

  AttentionOptions options;
  options.scale = scale_of(n, q);
  options.softcap = n.real("softcap", 0);
  options.softmax_dtype = q.dtype();
  options.lengths = lengths;
  options.mask = n.maybe(10);
  if (n.flag("causal", true)) {
    options.window_after = 0;
    options.offset = before;
    if (const int64_t window = n.integer("local_window_size", -1); window > 0)
      options.window_before = window - 1;
  }
  return {merge_heads(attention(q, k, v, options)), k, v};
}

// --- rotary position embedding

// Positions are given for each token, or the first for all.
std::vector<Value> convert_rotary_embedding(const NodeView& n) {
  refuse_flags(n, {"is_packed_batching"});
  if (n.real("scale", 1) != 1)
    throw unsupported("RotaryEmbedding: scale");
  const Value x = n.in(0), given = cast(n.in(1), DType::I64);
  const bool packed = n.rank_of(x) == 3;
  Value positions = given;
  if (n.rank_of(given) == 1)
    positions = unsqueeze(given + count_up(n, size_along(x, packed ? 1 : 2)), {0});
  const Value cos = angles(n, n.in(2), positions), sin = angles(n, n.in(3), positions);
  const bool interleaved = n.flag("interleaved", false);
  if (!packed)
    return {rotary(x, cos, sin, interleaved)};
  int64_t heads = n.integer("num_heads", 0);
  if (heads == 0) {
    const auto width = x.dim(2).constant(), half = cos.dim(2).constant();
    if (!width || !half || *half == 0)
      throw unsupported("RotaryEmbedding: {} by angles {}, without num_heads", x.type(), cos.type());
    heads = *width / (2 * *half);
  }
  return {merge_heads(rotary(split_heads(n, x, heads), cos, sin, interleaved))};
}

}  // namespace

const Conversions& microsoft_attention_conversions() {
  static const Conversions conversions = {
      {"Attention", convert_attention, kDomain},
      {"GroupQueryAttention", convert_group_query_attention, kDomain},
      {"MultiHeadAttention", convert_multi_head_attention, kDomain},
      {"QAttention", convert_qattention, kDomain},
      {"RotaryEmbedding", convert_rotary_embedding, kDomain},
  };
  return conversions;
}

}  // namespace tenon::onnx
