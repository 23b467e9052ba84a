// window.cpp — windows of convolutions that reach beyond the image wherever they stand, as those that are
// dilated further than it is long.
#include <algorithm>

#include "ops/slice.h"
#include "rewrite/quantised.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// How many of the first and last elements of a window see padding alone, along one dimension.
struct Trim {
  int64_t before = 0, after = 0;
};

Trim trim_of(int64_t size, int64_t windows, int64_t kernel, int64_t stride, int64_t dilation,
             int64_t pad_before, int64_t pad_after) {
  // Of the padding before the image, what the last window still sees.
  const int64_t seen_last = pad_before - (windows - 1) * stride;
  // The first element of a window that no longer sees the image, even where it stands first.
  const int64_t beyond = (size + pad_before + dilation - 1) / dilation;
  // One element stays, and what is left of the padding is not negative.
  Trim trim;
  if (seen_last > 0)
    trim.before = std::min({kernel - 1, pad_before / dilation, (seen_last - 1) / dilation + 1});
  trim.after =
      std::clamp<int64_t>(kernel - beyond, 0, std::min(kernel - 1 - trim.before, pad_after / dilation));
  return trim;
}

// Of each spatial dimension; empty where nothing can be trimmed.
std::vector<Trim> trims_of(const Node& conv) {
  const Value x = conv.in("x"), w = conv.in("w"), y = conv.result();
  if (conv.attr("padding").as<std::string>() != "explicit" || !x.shape().ranked() || !y.shape().ranked() ||
      !w.shape().extents())
    return {};
  const std::vector<int64_t>&strides = conv.attr("strides"), &dilations = conv.attr("dilations"),
        &pads = conv.attr("pads");
  const size_t count = static_cast<size_t>(x.rank()) - 2;
  std::vector<Trim> trims(count);
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const std::optional<int64_t> size = x.dim(axis).constant(), windows = y.dim(axis).constant();
    if (!size || !windows)
      continue;
    trims[i] =
        trim_of(*size, *windows, *w.dim(axis).constant(), strides[i], dilations[i], pads[i], pads[count + i]);
    any |= trims[i].before + trims[i].after > 0;
  }
  return any ? trims : std::vector<Trim>();
}

Value convolve_trimmed(const Node& conv) {
  const std::vector<Trim> trims = trims_of(conv);
  const std::vector<int64_t>& dilations = conv.attr("dilations");
  std::vector<int64_t> pads = conv.attr("pads");
  Value w = conv.in("w");
  for (size_t i = 0; i < trims.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    w = slice(w, axis, trims[i].before, *w.dim(axis).constant() - trims[i].after);
    pads[i] -= trims[i].before * dilations[i];
    pads[trims.size() + i] -= trims[i].after * dilations[i];
  }
  Attributes attributes = conv.attributes();
  attributes.insert_or_assign("pads", pads);
  return conv.graph().create("conv", {{"x", conv.in("x")}, {"w", w}}, attributes)->result();
}

Rules make_rules() {
  const Pattern x = any("x"), w = constant("w");
  const Pattern conv = op("conv", {{"x", x}, {"w", w}});
  return {
      {.name = "window-beyond-image",
       .match = conv,
       .replace = {"conv(x, a part of w)", [=](const Match& m) { return convolve_trimmed(m.node(conv)); }},
       .when = {{"an edge of the window sees padding alone",
                 [=](const Match& m) { return !trims_of(m.node(conv)).empty(); }},
                is_not_quantised(w)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,1,4,3]) { %w = parameter(name=\"w\", value=T[2,1,3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, "
                "10, 11, 12, 13, 14, 15, 16, 17, 18}) "
                "%y = conv(%x, %w, strides=[1,1], dilations=[4,1], pads=[4,1,4,1]) return %y }",
       .stays = "(%x: T[n,1,4,3]) { %w = parameter(name=\"w\", value=T[2,1,3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, "
                "10, 11, 12, 13, 14, 15, 16, 17, 18}) "
                "%y = conv(%x, %w, strides=[1,1], dilations=[3,1], pads=[3,1,3,1]) return %y }"},
  };
}

}  // namespace

const Rules& window_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
