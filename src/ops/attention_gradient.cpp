#include "ops/attention_gradient.h"

#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/linear.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace tenon {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();  // the bias of a key that is not seen

AttentionOptions options_of(const Node& n) {
  return {.scale = n.attr("scale"),
          .softcap = n.attr("softcap"),
          .softmax_dtype = n.attr("softmax_dtype"),
          .mask = n.in("mask"),
          .pad_mask = n.attr("pad_mask"),
          .window_before = n.attr("window_before"),
          .window_after = n.attr("window_after"),
          .offset = n.in("offset"),
          .lengths = n.in("lengths")};
}

// Query heads by the key head that serves them: [batch, heads, …] as [batch, key heads, group, …]; and key
// heads likewise, with one of each group. Where every head has a key head of its own, they stay as they are.
struct Grouping {
  explicit Grouping(const Node& n)
      : q(n.in("q")), k(n.in("k")), grouped(!provably_equal(q.dim(1), k.dim(1))) {}

  Value queries(Value x) const {
    if (!grouped)
      return x;
    // Where there are no elements, the group does not follow from their number.
    const std::optional<Dim> group = divide_exactly(q.dim(1), k.dim(1));
    const int64_t known = group ? group->constant().value_or(-1) : -1;
    return reshape(x, concat({size_along(x, 0), size_along(k, 1), int_vector(x.graph(), {known}),
                              size_along(x, 2), size_along(x, 3)},
                             0));
  }
  Value keys(Value x) const { return grouped ? unsqueeze(x, {2}) : x; }
  // What is added to the scores of [batch, heads, …], for those in groups.
  Value biases(Value x) const {
    if (!grouped || x.rank() < 3)
      return x;
    const Value whole = x.rank() == 3 ? unsqueeze(x, {0}) : x;
    return whole.dim(1) == Dim(1) ? unsqueeze(whole, {2}) : queries(whole);
  }
  // Back to [batch, heads, …].
  Value heads(Value x) const {
    return grouped
               ? reshape(x,
                         concat({size_along(q, 0), size_along(q, 1), size_along(x, 3), size_along(x, 4)}, 0))
               : x;
  }
  // The gradient of keys or values, from that in groups.
  Value sum_groups(Value x) const { return grouped ? reduce_sum(x, {2}) : x; }

  Value q, k;
  bool grouped;
};

// --- decompositions ---

Value number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }

// The mask as numbers that are added to the scores.
Value mask_bias(const Node& n) {
  const Value mask = n.in("mask"), q = n.in("q");
  const Value bias = mask.dtype() == DType::Bool ? where(mask, number(q, 0), number(q, kNever)) : mask;
  if (!n.attr("pad_mask"))
    return bias;
  const Value missing = size_along(n.in("k"), 2) - size_along(mask, -1);
  return pad(bias, concat({int_vector(n.graph(), {0}), missing}, 0), {-1}, number(q, kNever));
}

Value positions_along(Value x, int64_t axis) {
  Graph& graph = x.graph();
  const auto integer = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
  return range(integer(0), squeeze(size_along(x, axis), {0}), integer(1));
}

// Whether each query sees each key, by their places and the lengths; empty where every one does.
Value seen_keys(const Node& n) {
  Graph& graph = n.graph();
  const int64_t before = n.attr("window_before"), after = n.attr("window_after");
  const auto integer = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
  const auto per_batch = [&](Value values) { return reshape(values, {-1, 1, 1, 1}); };
  const Value keys = positions_along(n.in("k"), 2);
  Value ahead = keys - unsqueeze(positions_along(n.in("q"), 2), {1});
  if (n.has("offset"))
    ahead = ahead - per_batch(n.in("offset"));
  Value seen;
  const auto also = [&](Value condition) { seen = seen ? logical_and(seen, condition) : condition; };
  if (before >= 0)
    also(greater_equal(ahead, integer(-before)));
  if (after >= 0)
    also(less_equal(ahead, integer(after)));
  if (n.has("lengths"))
    also(less(keys, per_batch(n.in("lengths"))));
  return seen;
}

// All that is added to the scores; empty where that is nothing.
Value whole_bias(const Node& n) {
  const Value q = n.in("q"), seen = seen_keys(n);
  const Value window = seen ? where(seen, number(q, 0), number(q, kNever)) : Value();
  if (!n.has("mask"))
    return window;
  return window ? mask_bias(n) + window : mask_bias(n);
}

// Whether every query sees a key, if there is any, as with causal attention.
bool sees_some_key(const Node& n) {
  if (n.has("mask") || n.has("lengths"))
    return false;
  const int64_t before = n.attr("window_before");
  if (n.has("offset")) {
    const std::optional<std::vector<int64_t>> offsets = n.in("offset").known_ints();
    return before < 0 && offsets && std::ranges::all_of(*offsets, [](int64_t offset) { return offset >= 0; });
  }
  const Dim beyond = n.in("q").dim(2) - n.in("k").dim(2);  // of the last query
  return before < 0 || beyond.upper_bound().value_or(before + 1) <= before;
}

// In the dtype that the steps round to. Those of f32 and f64 do not.
Value rounded_softmax(const Node& n, Value scores) {
  const DType own = scores.dtype(), steps = n.attr("softmax_dtype");
  const bool rounds = info(own).bits <= 16 || info(steps).bits <= 16;
  return !rounds || own == steps ? softmax(scores, -1) : cast(softmax(cast(scores, steps), -1), own);
}

// The products q kᵀ, in groups.
Value raw_scores(const Node& n, const Grouping& grouping) {
  const double root = std::sqrt(n.attr("scale").as<double>());
  return matmul(grouping.queries(n.in("q")) * root, grouping.keys(n.in("k")) * root, {.b = true});
}

// What becomes of them up to a stage, in groups or not.
Value finish_scores(const Node& n, Value scores, std::string_view stage, bool in_groups) {
  const double softcap = n.attr("softcap");
  if (stage == "raw")
    return scores;
  if (softcap != 0)
    scores = tanh(scores / softcap) * softcap;
  if (stage == "capped")
    return scores;
  Value bias = whole_bias(n);
  if (bias) {
    bias = in_groups ? Grouping(n).biases(bias) : bias;
    scores = scores + bias;
  }
  if (stage == "biased")
    return scores;
  const Value probabilities = rounded_softmax(n, scores);
  if (!bias || sees_some_key(n))
    return probabilities;
  const Value blind = equal(reduce_max(bias, {-1}, Keep::Dims), number(bias, kNever));
  return keep_where(logical_not(blind), probabilities);
}

// Whether it is known of the mask how its heads are grouped.
bool can_group_bias(const Node& n) {
  const Value mask = n.in("mask");
  if (!Grouping(n).grouped || !mask || mask.rank() < 3)
    return true;
  return mask.dim(-3) == Dim(1) || provably_equal(mask.dim(-3), n.in("q").dim(1));
}

}  // namespace

std::vector<Value> decompose_attention_scores(const Node& n) {
  const Grouping grouping(n);
  const std::string& stage = n.attr("stage");
  return {finish_scores(n, grouping.heads(raw_scores(n, grouping)), stage, false)};
}

// The scores stay in groups, where what is added to them can be grouped too: then no other shape stands
// between the two products, and all can become one kernel.
std::vector<Value> decompose_attention(const Node& n) {
  const Grouping grouping(n);
  const Value scores =
      can_group_bias(n)
          ? finish_scores(n, raw_scores(n, grouping), "probabilities", true)
          : grouping.queries(attention_scores(n.in("q"), n.in("k"), "probabilities", options_of(n)));
  return {grouping.heads(matmul(scores, grouping.keys(n.in("v"))))};
}

namespace {

// --- gradients ---

// From the gradient of the probabilities p to that of the scores they were made of.
Value through_softmax(Value p, Value dp) { return p * (dp - reduce_sum(p * dp, {-1}, Keep::Dims)); }

// From the gradient of the raw scores to those of q and k.
std::vector<Operand> grad_raw(const GradContext& n, Value d) {
  const Grouping grouping(n.node());
  const Value grouped = grouping.queries(d * n.attr("scale").as<double>());
  return {{"q", grouping.heads(matmul(grouped, grouping.keys(n.in("k"))))},
          {"k", grouping.sum_groups(matmul(grouped, grouping.queries(n.in("q")), {.a = true}))}};
}

// From the gradient of the capped scores.
std::vector<Operand> grad_capped(const GradContext& n, Value d) {
  const double softcap = n.attr("softcap");
  if (softcap == 0)
    return grad_raw(n, d);
  const Value bent = attention_scores(n.in("q"), n.in("k"), "capped", options_of(n.node())) / softcap;
  return grad_raw(n, d * (1.0 - bent * bent));
}

// From the gradient of the scores with the bias, also to that of the mask.
std::vector<Operand> grad_biased(const GradContext& n, Value d) {
  std::vector<Operand> gradients = grad_capped(n, d);
  if (n.wants("mask"))
    gradients.emplace_back("mask", n.attr("pad_mask") ? cut_to(d, n.in("mask"), -1) : d);
  return gradients;
}

}  // namespace

std::vector<Operand> grad_attention(const GradContext& n) {
  const Grouping grouping(n.node());
  const Value p = attention_scores(n.in("q"), n.in("k"), "probabilities", options_of(n.node()));
  const Value dy = grouping.queries(n.dy());
  const Value dp = grouping.heads(matmul(dy, grouping.keys(n.in("v")), {.b = true}));
  std::vector<Operand> gradients = grad_biased(n, through_softmax(p, dp));
  gradients.emplace_back("v", grouping.sum_groups(matmul(grouping.queries(p), dy, {.a = true})));
  return gradients;
}

std::vector<Operand> grad_attention_scores(const GradContext& n) {
  const std::string& stage = n.attr("stage");
  if (stage == "raw")
    return grad_raw(n, n.dy());
  if (stage == "capped")
    return grad_capped(n, n.dy());
  return grad_biased(n, stage == "biased" ? n.dy() : through_softmax(n.out(), n.dy()));
}

}  // namespace tenon
