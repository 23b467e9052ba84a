// convolution.cpp — what stands before or after a convolution and can be folded into its weights, its bias
// or its padding. The bias of a convolution is a sum with one number per channel.
#include <algorithm>
#include <set>

#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "rewrite/quantised.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// Whether `c` has one number, or one for each channel (dimension 1) of `y`.
bool is_per_channel(Value c, Value y) {
  if (!c.shape().ranked() || !y.shape().ranked() || c.rank() > y.rank())
    return false;
  for (int64_t axis = -1; axis >= -c.rank(); --axis)
    if (axis != 1 - y.rank() && c.dim(axis) != Dim(1))
      return false;
  return true;
}

Condition is_per_channel(const Pattern& c) {
  return {c.to_string() + " is one number or one for each channel",
          [=](const Match& m) { return is_per_channel(m[c], m.root()); }};
}

// [channels] as it broadcasts to a tensor of this rank: [channels, 1, …].
Value along_channels(Value c, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank) - 1, 1);
  shape.front() = -1;
  return reshape(c, shape);
}

// The weights of a convolution with those of each channel of the result multiplied by its factor. They are
// [filters, channels / groups, kernel…]; of a transposed one, [channels, filters / groups, kernel…], where
// the first channels make the filters of the first group, and so on.
Value scaled_weights(const Node& conv, Value factor) {
  const Value w = conv.in("w");
  const bool is_one = factor.shape().element_count() == Dim(1);
  std::vector<int64_t> shape(static_cast<size_t>(w.rank()), 1);
  if (is_one)
    return w * reshape(factor, shape);
  if (conv.is("conv")) {
    shape.front() = -1;
    return w * reshape(factor, shape);
  }
  const int64_t groups = conv.attr("groups");
  std::vector<int64_t> split = {groups, -1};
  for (int64_t axis = 1; axis < w.rank(); ++axis)
    split.push_back(*w.dim(axis).constant());
  std::vector<int64_t> factors(static_cast<size_t>(w.rank()) + 1, 1);
  factors[0] = groups;
  factors[2] = -1;
  return reshape(reshape(w, split) * reshape(factor, factors), *w.shape().extents());
}

Value convolve(const Node& conv, Value x, Value w) {
  return x.graph().create(conv.op(), {{"x", x}, {"w", w}}, conv.attributes())->result();
}

Condition has_known_weights(const Pattern& w) {
  return {w.to_string() + " has known sizes",
          [=](const Match& m) { return m[w].shape().extents().has_value(); }};
}

Condition have_one_dtype(const Pattern& a, const Pattern& b, const Pattern& c) {
  return {"all have one dtype",
          [=](const Match& m) { return m[a].dtype() == m[b].dtype() && m[a].dtype() == m[c].dtype(); }, true};
}

// conv(x, w) · c, and the same for conv_transpose.
Rule scale(std::string_view name, std::string_view op_name, std::string_view fires, std::string_view stays) {
  const Pattern x = any("x"), w = constant("w"), c = constant("c");
  const Pattern conv = op(op_name, {{"x", x}, {"w", w}}).once();
  return {.name = name,
          .match = conv * c,
          .replace = {fmt::format("{}(x, w * c)", op_name),
                      [=](const Match& m) {
                        return convolve(m.node(conv), m[x], scaled_weights(m.node(conv), m[c]));
                      }},
          .when = {is_float(x), has_known_weights(w), is_per_channel(c), is_not_quantised(w)},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

// Batch normalisation after a convolution, whose statistics are fixed: a factor and a bias for each channel.
Rule fold_batch_norm(std::string_view name, std::string_view op_name, std::string_view fires,
                     std::string_view stays) {
  const Pattern x = any("x"), w = constant("w"), b = constant("b");
  const Pattern scale = constant("scale"), bias = constant("bias"), mean = constant("mean"),
                variance = constant("variance");
  const Pattern conv = op(op_name, {{"x", x}, {"w", w}}), with_bias = conv + b;
  const Pattern norm = op("batch_norm", {{"x", either({with_bias, conv})},
                                         {"scale", scale},
                                         {"bias", bias},
                                         {"mean", mean},
                                         {"variance", variance}});
  return {.name = name,
          .match = norm,
          .replace = {fmt::format("{}(x, w * scale / sqrt(variance + epsilon)) + …", op_name),
                      [=](const Match& m) {
                        const int64_t rank = m.root().rank();
                        const double epsilon = m.node(norm).attr("epsilon");
                        const Value factor = m[scale] / sqrt(m[variance] + epsilon);
                        Value shift = m[bias] - m[mean] * factor;
                        shift = along_channels(shift, rank);
                        if (m.has(with_bias))
                          shift = m[b] * along_channels(factor, rank) + shift;
                        return convolve(m.node(conv), m[x], scaled_weights(m.node(conv), factor)) + shift;
                      }},
          .when = {{"the output of the convolution has no other users",
                    [=](const Match& m) {
                      return m[conv].has_one_use() && (!m.has(with_bias) || m[with_bias].has_one_use());
                    },
                    true},
                   has_known_weights(w),
                   is_not_quantised(w),
                   have_one_dtype(x, scale, variance),
                   {"b is one number or one for each channel",
                    [=](const Match& m) { return !m.has(with_bias) || is_per_channel(m[b], m[with_bias]); }}},
          .numerics = Numerics::Reassociates,
          .fires = fires,
          .stays = stays};
}

// --- convolutions side by side ---

// A convolution of one part of x, and what is added to it.
struct PartialConv {
  const Node* conv = nullptr;
  Value bias = {};
};

std::optional<PartialConv> partial_conv(Value part) {
  if (part.is_input() || !part.has_one_use())
    return std::nullopt;
  if (part.node()->is("conv"))
    return PartialConv{part.node()};
  if (!part.node()->is("add"))
    return std::nullopt;
  const Value a = part.node()->in("a"), b = part.node()->in("b");
  for (const auto& [y, bias] : {std::pair(a, b), std::pair(b, a)})
    if (!y.is_input() && y.node()->is("conv") && y.has_one_use() && is_fixed(bias) &&
        is_per_channel(bias, y) && bias.shape().element_count() == y.dim(1))
      return PartialConv{y.node(), bias};
  return std::nullopt;
}

// The convolutions of all the parts of a split, in their order and alike; empty where a concat is of others.
std::vector<PartialConv> convs_of_all_parts(const Node& concat) {
  std::vector<PartialConv> convs;
  const std::vector<Value> parts = concat.ins("x");
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto each = partial_conv(parts[i]);
    if (!each)
      return {};
    const Value x = each->conv->in("x"), w = each->conv->in("w");
    if (x.is_input() || !x.node()->is("split") || x.index() != static_cast<int64_t>(i) || !is_fixed(w))
      return {};
    convs.push_back(*each);
    const PartialConv& first = convs.front();
    if (x.node() != first.conv->in("x").node() || bool(each->bias) != bool(first.bias) ||
        each->conv->attributes() != first.conv->attributes() || w.type() != first.conv->in("w").type() ||
        x.type() != first.conv->in("x").type())
      return {};
  }
  const Node& split = *convs.front().conv->in("x").node();
  const int64_t axis = split.attr("axis"), rank = concat.result().rank(), along = concat.attr("axis");
  const bool is_along_channels = (axis == 1 || axis == 1 - rank) && (along == 1 || along == 1 - rank);
  return is_along_channels && split.result_count() == static_cast<int64_t>(parts.size())
             ? convs
             : std::vector<PartialConv>();
}

// As one convolution whose channels fall into groups.
Value convolve_in_groups(const std::vector<PartialConv>& convs) {
  std::vector<Value> weights, biases;
  const Node& first = *convs.front().conv;
  const int64_t rank = first.result().rank();
  for (const PartialConv& each : convs) {
    weights.push_back(each.conv->in("w"));
    if (each.bias)
      biases.push_back(along_channels(each.bias, rank));
  }
  Attributes attributes = first.attributes();
  attributes.insert_or_assign("groups",
                              first.attr("groups").as<int64_t>() * static_cast<int64_t>(convs.size()));
  const Value y =
      first.graph()
          .create(first.op(), {{"x", first.in("x").node()->in("x")}, {"w", concat(weights, 0)}}, attributes)
          ->result();
  return biases.empty() ? y : y + concat(biases, 0);
}

Rule group_convs() {
  const Pattern concat = result_of("concat");
  return {.name = "conv-in-groups",
          .match = concat,
          .replace = {"conv(x, concat(w), groups=…)",
                      [=](const Match& m) { return convolve_in_groups(convs_of_all_parts(m.node(concat))); }},
          .when = {{"the rank is known",
                    [](const Match& m) { return m.root().type().is_tensor() && m.root().shape().ranked(); }},
                   {"its parts are alike convolutions of all parts of a split",
                    [=](const Match& m) { return !convs_of_all_parts(m.node(concat)).empty(); }},
                   {"the weights are not made of quantised numbers",
                    [=](const Match& m) {
                      const std::vector<PartialConv> convs = convs_of_all_parts(m.node(concat));
                      return std::none_of(convs.begin(), convs.end(), [](const PartialConv& each) {
                        return is_quantised(each.conv->in("w"));
                      });
                    }}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,4,3]) { %v = parameter(name=\"v\", value=T[3,2,1] {1, 2, 3, 4, 0.5, 1}) "
              "%w = parameter(name=\"w\", value=T[3,2,1] {2, 0, 1, 1, 3, 0.5}) "
              "%b = parameter(name=\"b\", value=T[3,1] {1, 2, 3}) %c = parameter(name=\"c\", value=T[1,3,1] "
              "{4, 3, 0.5}) %s = constant(value=i64[2] {2, 2}) %0, %1 = split(%x, %s, axis=1) "
              "%2 = conv(%0, %v, strides=[1], dilations=[1], pads=[1, 0]) %3 = add(%2, %b) "
              "%4 = conv(%1, %w, strides=[1], dilations=[1], pads=[1, 0]) %5 = add(%4, %c) "
              "%y = concat([%3, %5], axis=1) return %y }",
          .stays =
              "(%x: T[n,4,3]) { %v = parameter(name=\"v\", value=T[3,2,1] {1, 2, 3, 4, 0.5, 1}) "
              "%w = parameter(name=\"w\", value=T[3,2,1] {2, 0, 1, 1, 3, 0.5}) "
              "%s = constant(value=i64[2] {2, 2}) %0, %1 = split(%x, %s, axis=1) "
              "%2 = conv(%0, %v, strides=[1], dilations=[1], pads=[1, 0]) "
              "%3 = conv(%1, %w, strides=[1], dilations=[1], pads=[1, 0]) "
              "%y = concat([%3, %2], axis=1) return %y }"};
}

// --- padding ---

bool has_padding(const Node& conv) {
  const std::vector<int64_t>& pads = conv.attr("pads");
  return conv.attr("padding").as<std::string>() != "explicit" ||
         std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; });
}

// Whether the convolution may get a bias: it has one, or the model gets no more numbers than the four that
// each channel of x had.
bool has_room_for_bias(const Node& conv) {
  const Value y = conv.result(), w = conv.in("w");
  if (y.has_one_use() && y.users().front()->is("add"))
    return true;
  const int64_t groups = conv.attr("groups");
  return *w.dim(0).constant() <= 4 * groups * *w.dim(1).constant();
}

// Batch normalisation before a convolution. Padding is added after it, and would be normalised too.
Rule batch_norm_first() {
  const Pattern x = any("x"), w = constant("w"), scale = constant("scale"), bias = constant("bias"),
                mean = constant("mean"), variance = constant("variance");
  const Pattern norm =
      op("batch_norm", {{"x", x}, {"scale", scale}, {"bias", bias}, {"mean", mean}, {"variance", variance}})
          .once();
  const Pattern conv = op("conv", {{"x", norm}, {"w", w}});
  return {
      .name = "batch-norm-before-conv",
      .match = conv,
      .replace = {"conv(x, w * scale / sqrt(variance + epsilon)) + …",
                  [=](const Match& m) {
                    const int64_t rank = m.root().rank(), groups = m.node(conv).attr("groups");
                    const double epsilon = m.node(norm).attr("epsilon");
                    const Value factor = m[scale] / sqrt(m[variance] + epsilon),
                                shift = m[bias] - m[mean] * factor;
                    // [groups, filters / groups, channels / groups, kernel…]
                    const Extents extents = *m[w].shape().extents();
                    Extents split = extents, inputs(split.size() + 1, 1), kernel;
                    split.front() /= groups;
                    split.insert(split.begin(), groups);
                    inputs[0] = groups;
                    inputs[2] = extents[1];
                    for (int64_t axis = 2; axis <= rank; ++axis)
                      kernel.push_back(axis);
                    const Value weights = reshape(m[w], split);
                    const Value sums = reduce_sum(weights * reshape(shift, inputs), kernel);
                    return convolve(m.node(conv), m[x], reshape(weights * reshape(factor, inputs), extents)) +
                           along_channels(reshape(sums, {-1}), rank);
                  }},
      .when = {is_ordinary_float(x),
               has_known_weights(w),
               is_not_quantised(w),
               have_one_dtype(x, scale, variance),
               {"a bias adds no numbers", [=](const Match& m) { return has_room_for_bias(m.node(conv)); }},
               {"the convolution does not pad", [=](const Match& m) { return !has_padding(m.node(conv)); },
                true}},
      .numerics = Numerics::Reassociates,
      .fires =
          "(%x: T[n,4,3]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
          "%s = parameter(name=\"s\", value=T[4] {1, 0.5, 2, 4}) "
          "%0 = batch_norm(%x, %s, %s, %s, %s) "
          "%y = conv(%0, %w, groups=2, strides=[1], dilations=[1], pads=[0, 0]) return %y }",
      .stays =
          "(%x: T[n,4,3]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
          "%s = parameter(name=\"s\", value=T[4] {1, 0.5, 2, 4}) "
          "%0 = batch_norm(%x, %s, %s, %s, %s) "
          "%y = conv(%0, %w, groups=2, strides=[1], dilations=[1], pads=[1, 0]) return %y }"};
}

// Whether a pool would have no window that sees padding alone: ONNX Runtime refuses to make one.
bool leaves_no_window_empty(const Node& node, const std::vector<int64_t>& pads) {
  if (node.op().find_attribute("kernel") == nullptr)
    return true;
  const std::vector<int64_t>& kernel = node.attr("kernel");
  for (size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= kernel[i % kernel.size()])
      return false;
  return true;
}

// ONNX Runtime drops a pad that only a max_pool reads, as if that padded with zeros itself.
bool is_pooled(Value padded) {
  const std::vector<Node*> users = padded.users();
  return std::any_of(users.begin(), users.end(), [](const Node* user) { return user->is("max_pool"); });
}

bool is_never_negative(Value x) {
  static const std::set<std::string, std::less<>> ops = {"relu", "sigmoid", "softmax",
                                                         "exp",  "abs",     "softplus"};
  if (x.is_input())
    return false;
  if (x.node()->is("clip"))
    return x.node()->has("min") && uniform_number(x.node()->in("min")).value_or(-1) >= 0;
  return ops.contains(x.node()->op().name);
}

// pad(x) with zeros, in front of what pads with zeros itself.
Rule fold_pad(std::string_view name, const Pattern& padded, const Pattern& pad, const Pattern& x,
              const Pattern& pads, std::vector<Condition> when, std::string_view fires,
              std::string_view stays) {
  const auto new_pads = [=](const Match& m) -> std::optional<std::vector<int64_t>> {
    const Node &outer = *m.root().node(), &inner = m.node(pad);
    const auto amounts = known_elements(m[pads]) != nullptr ? m[pads].known_ints() : std::nullopt;
    if (!amounts || inner.is_late("axes") || inner.attr("mode").as<std::string>() != "constant" ||
        outer.attr("padding").as<std::string>() != "explicit" || !m[x].shape().ranked())
      return std::nullopt;
    const int64_t rank = m[x].rank(), spatial = rank - 2;
    std::vector<int64_t> sum = outer.attr("pads");
    sum.resize(static_cast<size_t>(2 * spatial));
    const std::vector<int64_t>& axes = inner.attr("axes");
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      const int64_t before = (*amounts)[i], after = (*amounts)[axes.size() + i];
      if (before < 0 || after < 0 || (axis < 2 && (before != 0 || after != 0)))
        return std::nullopt;
      if (axis < 2)
        continue;
      sum[static_cast<size_t>(axis - 2)] += before;
      sum[static_cast<size_t>(axis - 2 + spatial)] += after;
    }
    return leaves_no_window_empty(outer, sum) ? std::optional(sum) : std::nullopt;
  };
  when.push_back({"x has a zero", [=](const Match& m) { return m[x].dtype() != DType::F8E8M0; }});
  when.push_back({"zeros are added to the spatial dimensions alone, and not too many",
                  [=](const Match& m) { return new_pads(m).has_value(); }, true});
  return {.name = name,
          .match = padded,
          .replace = {"the same of x, with more padding",
                      [=](const Match& m) {
                        const Node& outer = *m.root().node();
                        Attributes attributes = outer.attributes();
                        attributes.insert_or_assign("pads", *new_pads(m));
                        if (outer.op().find_attribute("count_padding") != nullptr)
                          attributes.insert_or_assign("count_padding", true);
                        std::vector<Operand> operands = {{"x", m[x]}};
                        if (outer.op().find_operand("w") != nullptr)
                          operands.emplace_back("w", outer.in("w"));
                        return m[x].graph().create(outer.op(), operands, attributes)->result();
                      }},
          .when = std::move(when),
          .numerics = Numerics::Reassociates,  // a sum of -0 alone becomes 0 with zeros added to it
          .fires = fires,
          .stays = stays};
}

Rules make_rules() {
  const Pattern x = any("x"), w = constant("w"), pads = any("pads");
  const Pattern pad = op("pad", {{"x", x}, {"pads", pads}});
  const Pattern zero_pad = either({pad, op("pad", {{"x", x}, {"pads", pads}, {"value", 0.0}})});
  const Pattern padded_conv = op("conv", {{"x", zero_pad}, {"w", w}});
  const Pattern padded_pool = op("average_pool", {{"x", zero_pad}});
  const Pattern c = constant("c"), d = constant("d"), v = constant("v");
  const Pattern conv = op("conv", {{"x", x}, {"w", v}}), biased = (conv + c).once();
  const Pattern y = any("y"), conv_once = op("conv", {{"x", x}, {"w", v}}).once(),
                summed = (conv_once + y).once();
  const Pattern padded_max_pool = op("max_pool", {{"x", zero_pad}});
  return {
      fold_batch_norm(
          "conv-batch-norm", "conv",
          "(%x: T[n,2,3,3]) { %w = parameter(name=\"w\", value=T[2,1,1,1] {1, 2}) "
          "%b = parameter(name=\"b\", value=T[2,1,1] {0.5, 1}) %s = parameter(name=\"s\", value=T[2] {1, "
          "0.5}) "
          "%h = parameter(name=\"h\", value=T[2] {1, 2}) %m = parameter(name=\"m\", value=T[2] {0.5, 0.25}) "
          "%v = parameter(name=\"v\", value=T[2] {1, 4}) "
          "%0 = conv(%x, %w, groups=2, strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0]) %1 = add(%0, %b) "
          "%y = batch_norm(%1, %s, %h, %m, %v) return %y }",
          "(%x: T[n,2,3,3]) { %w = parameter(name=\"w\", value=T[2,1,1,1] {1, 2}) "
          "%s = parameter(name=\"s\", value=T[2] {1, 0.5}) "
          "%0 = conv(%x, %w, groups=2, strides=[1, 1], dilations=[1, 1], pads=[0, 0, 0, 0]) "
          "%y = batch_norm(%0, %s, %s, %s, %s) return %y, %0 }"),
      fold_batch_norm(
          "conv-transpose-batch-norm", "conv_transpose",
          "(%x: T[n,4,3]) { %w = parameter(name=\"w\", value=T[4,1,2] {1, 2, 3, 4, 5, 6, 7, 8}) "
          "%s = parameter(name=\"s\", value=T[2] {1, 0.5}) "
          "%0 = conv_transpose(%x, %w, groups=2, strides=[2], dilations=[1], pads=[0, 0], "
          "output_padding=[0]) "
          "%y = batch_norm(%0, %s, %s, %s, %s) return %y }",
          "(%x: T[n,4,3], %s: T[2]) { %w = parameter(name=\"w\", value=T[4,1,2] {1, 2, 3, 4, 5, 6, 7, 8}) "
          "%0 = conv_transpose(%x, %w, groups=2, strides=[2], dilations=[1], pads=[0, 0], "
          "output_padding=[0]) "
          "%y = batch_norm(%0, %s, %s, %s, %s) return %y }"),
      batch_norm_first(),
      group_convs(),
      scale("scale-into-conv", "conv",
            "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
            "%c = parameter(name=\"c\", value=T[2,1] {0.5, 3}) "
            "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %y = mul(%0, %c) return %y }",
            "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
            "%c = parameter(name=\"c\", value=T[5] {0.5, 3, 1, 2, 3}) "
            "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %y = mul(%0, %c) return %y }"),
      scale("scale-into-conv-transpose", "conv_transpose",
            "(%x: T[n,4,3]) { %w = parameter(name=\"w\", value=T[4,1,2] {1, 2, 3, 4, 5, 6, 7, 8}) "
            "%c = parameter(name=\"c\", value=T[2,1] {0.5, 3}) "
            "%0 = conv_transpose(%x, %w, groups=2, strides=[2], dilations=[1], pads=[0, 0], "
            "output_padding=[0]) "
            "%y = mul(%0, %c) return %y }",
            "(%x: T[n,4,3]) { %w = parameter(name=\"w\", value=T[4,1,2] {1, 2, 3, 4, 5, 6, 7, 8}) "
            "%c = parameter(name=\"c\", value=T[2,1] {0.5, 3}) "
            "%0 = conv_transpose(%x, %w, groups=2, strides=[2], dilations=[1], pads=[0, 0], "
            "output_padding=[0]) "
            "%y = mul(%0, %c) return %y, %0 }"),
      {.name = "conv-biases",
       .match = biased + d,
       .replace = conv + (c + d),
       .when = {is_per_channel(c), is_per_channel(d)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
                "%c = parameter(name=\"c\", value=T[2,1] {0.5, 3}) %d = parameter(name=\"d\", value=T[1,2,1] "
                "{2, 3}) "
                "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %1 = add(%0, %c) %y = add(%d, "
                "%1) return %y }",
       .stays =
           "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
           "%c = parameter(name=\"c\", value=T[2,1] {0.5, 3}) %d = parameter(name=\"d\", value=T[5] {2, 3, "
           "4, 5, 6}) "
           "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %1 = add(%0, %c) %y = add(%d, %1) "
           "return %y }"},
      // The sums of branches gather their biases, so that branches can meet; those that do not take them
      // back.
      {.name = "bias-beside-conv",
       .match = summed + d,
       .replace = (conv_once + d) + y,
       .when = {is_ordinary_float(x), is_per_channel(d), same_type(conv_once, summed), is_not_fixed(y)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,2,5], %y: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
                "%d = parameter(name=\"d\", value=T[2,1] {0.5, 3}) "
                "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %1 = add(%y, %0) "
                "%z = add(%1, %d) return %z }",
       .stays = "(%x: T[n,2,5], %y: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,1] {1, 2, 3, 4}) "
                "%d = parameter(name=\"d\", value=T[2,1] {0.5, 3}) "
                "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %1 = add(%y, %0) "
                "%z = add(%1, %d) return %z, %1 }"},
      fold_pad("pad-into-conv", padded_conv, zero_pad, x, pads,
               {{"no max_pool keeps the padding",
                 [=](const Match& m) { return !is_pooled(m.root().node()->in("x")); }, true}},
               "(%x: T[n,1,4]) { %w = parameter(name=\"w\", value=T[2,1,2] {1, 2, 3, 4}) %p = "
               "constant(value=i64[2] {1, 2}) %0 = pad(%x, %p, axes=[2]) "
               "%y = conv(%0, %w, strides=[1], dilations=[1], pads=[0, 1]) return %y }",
               "(%x: T[n,1,4]) { %w = parameter(name=\"w\", value=T[2,1,2] {1, 2, 3, 4}) %p = "
               "constant(value=i64[2] {1, 2}) %0 = pad(%x, %p, axes=[2], "
               "mode=\"edge\") %y = conv(%0, %w, strides=[1], dilations=[1], pads=[0, 1]) return %y }"),
      fold_pad("pad-into-max-pool", padded_max_pool, zero_pad, x, pads,
               {{"nothing is negative", [=](const Match& m) { return is_never_negative(m[x]); }, true},
                {"every window sees more than padding",
                 [](const Match& m) {
                   const Node& pool = *m.root().node();
                   const std::vector<int64_t>& dilations = pool.attr("dilations");
                   return !pool.attr("round_up").as<bool>() &&
                          std::all_of(dilations.begin(), dilations.end(), [](int64_t d) { return d == 1; });
                 }},
                {"the indices are not wanted",
                 [](const Match& m) {
                   return m.root().index() == 0 && m.root().node()->result(1).use_count() == 0;
                 }}},
               "(%x: T[n,1,4]) { %p = constant(value=i64[2] {1, 1}) %0 = relu(%x) %1 = pad(%0, %p, axes=[2]) "
               "%y, %i = max_pool(%1, kernel=[2], strides=[1], dilations=[1], pads=[0, 0]) return %y }",
               "(%x: T[n,1,4]) { %p = constant(value=i64[2] {1, 1}) %1 = pad(%x, %p, axes=[2]) "
               "%y, %i = max_pool(%1, kernel=[2], strides=[1], dilations=[1], pads=[0, 0]) return %y }"),
      // Padding that counts; a max_pool's own padding never does, so that a pad before it stays.
      fold_pad("pad-into-average-pool", padded_pool, zero_pad, x, pads,
               {{"the last window does not stand out",
                 [](const Match& m) { return !m.root().node()->attr("round_up").as<bool>(); }},
                {"all padding counts",
                 [](const Match& m) {
                   const Node& pool = *m.root().node();
                   return pool.attr("count_padding").as<bool>() || !has_padding(pool);
                 },
                 true}},
               "(%x: T[n,1,4]) { %p = constant(value=i64[2] {1, 1}) %0 = pad(%x, %p, axes=[2]) "
               "%y = average_pool(%0, kernel=[2], strides=[1], dilations=[1], pads=[0, 0], "
               "count_padding=true) return %y }",
               "(%x: T[n,1,4]) { %p = constant(value=i64[2] {1, 1}) %0 = pad(%x, %p, axes=[2]) "
               "%y = average_pool(%0, kernel=[2], strides=[1], dilations=[1], pads=[1, 0], "
               "count_padding=false) return %y }"),
  };
}

}  // namespace

const Rules& convolution_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
