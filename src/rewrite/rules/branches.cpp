// branches.cpp — convolutions of one image whose results are added up, as in blocks with several branches
// between two activations: the same as one convolution by the sum of their weights.
#include <algorithm>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "rewrite/quantised.h"
#include "rewrite/rules/rules.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// How a window moves over an image, along one of its dimensions.
struct Window {
  int64_t size, dilation, pad;
};

// In bytes: zeros around larger weights would not be folded, and weights that are computed in each run take
// more time than a branch.
constexpr int64_t kLargestWeights = 256 << 10;

// Along each spatial dimension; empty where that is not known, or weights are too large.
std::vector<Window> windows_of(const Node& conv) {
  const Value w = conv.in("w");
  if (conv.attr("padding").as<std::string>() != "explicit" || !w.shape().extents() ||
      element_count(*w.shape().extents()) * info(w.dtype()).bytes > kLargestWeights)
    return {};
  const std::vector<int64_t>&dilations = conv.attr("dilations"), &pads = conv.attr("pads");
  std::vector<Window> windows;
  for (size_t i = 0; i < dilations.size(); ++i)
    windows.push_back({*w.dim(static_cast<int64_t>(i) + 2).constant(), dilations[i], pads[i]});
  return windows;
}

// Where smaller windows stand in larger ones: how many elements of these come before them along each
// dimension. Nothing where some reach beyond them, or see elements between theirs.
std::optional<std::vector<int64_t>> find_place(const std::vector<Window>& small,
                                               const std::vector<Window>& large) {
  if (large.empty() || small.size() != large.size())
    return std::nullopt;
  std::vector<int64_t> place;
  for (size_t i = 0; i < large.size(); ++i) {
    const int64_t shift = large[i].pad - small[i].pad, before = shift / large[i].dilation;
    if (shift < 0 || shift % large[i].dilation != 0 || before + small[i].size > large[i].size ||
        (small[i].size > 1 && small[i].dilation != large[i].dilation))
      return std::nullopt;
    place.push_back(before);
  }
  return place;
}

// Smaller weights with zeros around them, as large as those of another convolution.
Value enlarged(Value w, const std::vector<int64_t>& place, Value like) {
  std::vector<int64_t> pads = place, axes;
  for (size_t i = 0; i < place.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    axes.push_back(axis);
    pads.push_back(*like.dim(axis).constant() - place[i] - *w.dim(axis).constant());
  }
  if (std::ranges::all_of(pads, [](int64_t each) { return each == 0; }))
    return w;
  return pad(w, constant(w.graph(), Tensor::of(pads)), axes);
}

Value convolve(const Node& conv, Value w) {
  return conv.graph().create(conv.op(), {{"x", conv.in("x")}, {"w", w}}, conv.attributes())->result();
}

// --- two convolutions ---

// Where the window of the second stands in that of the first, if both move alike.
std::optional<std::vector<int64_t>> place_of_second(const Node& first, const Node& second) {
  const Value v = first.in("w"), w = second.in("w");
  if (first.attr("groups").as<int64_t>() != second.attr("groups").as<int64_t>() ||
      first.attr("strides").as<std::vector<int64_t>>() != second.attr("strides").as<std::vector<int64_t>>() ||
      first.result().type() != second.result().type() || v.rank() != w.rank() || v.dim(0) != w.dim(0) ||
      v.dim(1) != w.dim(1))
    return std::nullopt;
  return find_place(windows_of(second), windows_of(first));
}

Value add_up(const Node& a, const Node& b) {
  const bool is_first_larger = place_of_second(a, b).has_value();
  const Node &large = is_first_larger ? a : b, &small = is_first_larger ? b : a;
  return convolve(large,
                  large.in("w") + enlarged(small.in("w"), *place_of_second(large, small), large.in("w")));
}

Rule sum_of_convs() {
  const Pattern x = any("x"), v = constant("v"), w = constant("w"), c = constant("c");
  const Pattern a = op("conv", {{"x", x}, {"w", v}}).once(), b = op("conv", {{"x", x}, {"w", w}}).once();
  const Pattern biased = (a + c).once();
  return {.name = "sum-of-convs",
          .match = either({biased, a}) + b,
          .replace = {"conv(x, v + w)",
                      [=](const Match& m) {
                        const Value y = add_up(m.node(a), m.node(b));
                        return m.has(biased) ? y + m[c] : y;
                      }},
          .when = {is_ordinary_float(x),
                   is_not_quantised(v),
                   is_not_quantised(w),
                   {"both move alike, and one window holds the other",
                    [=](const Match& m) {
                      return m[a].type() == m.root().type() &&
                             (place_of_second(m.node(a), m.node(b)) || place_of_second(m.node(b), m.node(a)));
                    }}},
          .numerics = Numerics::Reassociates,
          .fires =
              "(%x: T[n,2,5]) { %v = parameter(name=\"v\", value=T[1,2,3] {1, 2, 3, 4, 5, 6}) "
              "%w = parameter(name=\"w\", value=T[1,2,1] {0.5, 2}) "
              "%0 = conv(%x, %v, strides=[2], dilations=[1], pads=[1, 1]) "
              "%1 = conv(%x, %w, strides=[2], dilations=[1], pads=[0, 0]) %y = add(%1, %0) return %y }",
          .stays =
              "(%x: T[n,2,5]) { %v = parameter(name=\"v\", value=T[1,2,3] {1, 2, 3, 4, 5, 6}) "
              "%w = parameter(name=\"w\", value=T[1,2,1] {0.5, 2}) "
              "%0 = conv(%x, %v, strides=[2], dilations=[2], pads=[1, 3]) "
              "%1 = conv(%x, %w, strides=[2], dilations=[1], pads=[0, 0]) %y = add(%1, %0) return %y }"};
}

// --- a convolution, and the image itself ---

// Where the window of a convolution that gives an image of the same size sees the element in its own place.
std::optional<std::vector<int64_t>> place_of_own(const Node& conv) {
  const std::vector<int64_t>& strides = conv.attr("strides");
  if (std::ranges::any_of(strides, [](int64_t stride) { return stride != 1; }) ||
      conv.result().type() != conv.in("x").type())
    return std::nullopt;
  return find_place(std::vector<Window>(strides.size(), {.size = 1, .dilation = 1, .pad = 0}),
                    windows_of(conv));
}

// The weights by which a convolution of one element gives what it reads.
Value unit_weights(const Node& conv) {
  const Value w = conv.in("w");
  Extents extents = *w.shape().extents();
  std::fill(extents.begin() + 2, extents.end(), 1);
  std::vector<double> elements(static_cast<size_t>(extents[0] * extents[1]));
  for (int64_t filter = 0; filter < extents[0]; ++filter)
    elements[static_cast<size_t>(filter * extents[1] + filter % extents[1])] = 1;
  return constant(w.graph(), narrow<double>(w.dtype(), extents, elements));
}

Condition sees_own(const Pattern& conv) {
  return {"the convolution gives an image like x, and each window sees the element in its place",
          [=](const Match& m) { return place_of_own(m.node(conv)).has_value(); }};
}

Rule conv_and_input() {
  const Pattern x = any("x"), w = constant("w"), c = constant("c");
  const Pattern conv = op("conv", {{"x", x}, {"w", w}}).once(), biased = (conv + c).once();
  return {.name = "conv-and-its-input",
          .match = either({biased, conv}) + x,
          .replace = {"conv(x, w + 1 in the middle)",
                      [=](const Match& m) {
                        const Node& node = m.node(conv);
                        const Value y =
                            convolve(node, m[w] + enlarged(unit_weights(node), *place_of_own(node), m[w]));
                        return m.has(biased) ? y + m[c] : y;
                      }},
          .when = {is_ordinary_float(x), is_not_quantised(w), sees_own(conv)},
          .numerics = Numerics::Reassociates,
          .fires =
              "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,1,3] {1, 2, 3, 4, 5, 6}) "
              "%0 = conv(%x, %w, groups=2, strides=[1], dilations=[1], pads=[1, 1]) %y = add(%0, %x) "
              "return %y }",
          .stays =
              "(%x: T[n,1,5]) { %w = parameter(name=\"w\", value=T[2,1,3] {1, 2, 3, 4, 5, 6}) "
              "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[1, 1]) %y = add(%0, %x) return %y }"};
}

// Batch normalisation of the image, whose statistics are fixed: a factor and a bias for each channel.
Rule conv_and_batch_norm() {
  const Pattern x = any("x"), w = constant("w"), c = constant("c");
  const Pattern scale = constant("scale"), bias = constant("bias"), mean = constant("mean"),
                variance = constant("variance");
  const Pattern conv = op("conv", {{"x", x}, {"w", w}}).once(), biased = (conv + c).once();
  const Pattern norm =
      op("batch_norm", {{"x", x}, {"scale", scale}, {"bias", bias}, {"mean", mean}, {"variance", variance}})
          .once();
  return {.name = "conv-and-batch-norm",
          .match = either({biased, conv}) + norm,
          .replace = {"conv(x, w + scale / sqrt(variance + epsilon) in the middle) + …",
                      [=](const Match& m) {
                        const Node& node = m.node(conv);
                        const double epsilon = m.node(norm).attr("epsilon");
                        const Value factor = m[scale] / sqrt(m[variance] + epsilon),
                                    shift = m[bias] - m[mean] * factor;
                        Extents filters(static_cast<size_t>(m[w].rank()), 1), channels = filters;
                        filters.front() = -1;
                        channels.pop_back();
                        channels.front() = -1;
                        const Value own = unit_weights(node) * reshape(factor, filters);
                        const Value y = convolve(node, m[w] + enlarged(own, *place_of_own(node), m[w])) +
                                        reshape(shift, channels);
                        return m.has(biased) ? y + m[c] : y;
                      }},
          .when = {is_ordinary_float(x),
                   is_not_quantised(w),
                   {"all have one dtype",
                    [=](const Match& m) {
                      return m[x].dtype() == m[scale].dtype() && m[x].dtype() == m[variance].dtype();
                    },
                    true},
                   sees_own(conv)},
          .numerics = Numerics::Reassociates,
          .fires =
              "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, "
              "3}) %s = parameter(name=\"s\", value=T[2] {1, 0.5}) "
              "%0 = conv(%x, %w, strides=[1], dilations=[1], pads=[1, 1]) %1 = batch_norm(%x, %s, %s, %s, "
              "%s) %y = add(%0, %1) return %y }",
          .stays =
              "(%x: T[n,2,5]) { %w = parameter(name=\"w\", value=T[2,2,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, "
              "3}) %s = parameter(name=\"s\", value=T[2] {1, 0.5}) "
              "%0 = conv(%x, %w, strides=[1], dilations=[2], pads=[1, 3]) %1 = batch_norm(%x, %s, %s, %s, "
              "%s) %y = add(%0, %1) return %y }"};
}

}  // namespace

const Rules& branch_rules() {
  static const Rules rules{sum_of_convs(), conv_and_input(), conv_and_batch_norm()};
  return rules;
}

}  // namespace tenon
