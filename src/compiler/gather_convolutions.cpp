#include "compiler/gather_convolutions.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "ops/convolve.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace tenon {
namespace {

// Along one spatial dimension.
struct Slide {
  int64_t stride, kernel, before;  // how many results the padding takes away at the beginning
  int64_t size, result;            // of the image, and of what is made of it

  int64_t turns() const { return (result - 1 + before) / stride + 1; }
  // How many weights reach the results at stride * q + phase.
  int64_t taps(int64_t phase) const { return (kernel - phase + stride - 1) / stride; }
};

std::optional<std::vector<Slide>> slides_of(const Node& node) {
  const Value x = node.in("x"), w = node.in("w"), y = node.result();
  const std::vector<int64_t>&strides = node.attr("strides"), &dilations = node.attr("dilations"),
        &pads = node.attr("pads");
  std::vector<Slide> slides;
  for (int64_t i = 2; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i - 2);
    const std::optional<int64_t> size = x.dim(i).constant(), result = y.dim(i).constant();
    if (!size || !result || *result < 1 || dilations[at] != 1)
      return std::nullopt;
    slides.push_back({strides[at], *w.dim(i).constant(), pads[at], *size, *result});
    const Slide& slide = slides.back();
    // Some of the image reaches no result, or some results are reached by nothing.
    if (slide.turns() < *size || slide.before < 0 || slide.kernel < slide.stride)
      return std::nullopt;
  }
  return slides;
}

// One of the convolutions: where its results stand along each spatial dimension, and how many weights it has.
struct Phase {
  std::vector<int64_t> at, taps;
};

// The last dimension fastest; those with equally many weights, one after the other, may be one convolution.
std::vector<Phase> phases_of(const std::vector<Slide>& slides) {
  std::vector<Phase> phases{{}};
  for (const Slide& slide : slides) {
    std::vector<Phase> more;
    for (const Phase& phase : phases)
      for (int64_t at = 0; at < slide.stride; ++at) {
        more.push_back(phase);
        more.back().at.push_back(at);
        more.back().taps.push_back(slide.taps(at));
      }
    phases = std::move(more);
  }
  return phases;
}

// [channels, filters, kernel…] as [phases and filters, channels, taps…], where the first weight comes last.
Tensor gathered(const Tensor& w, const std::vector<Slide>& slides, std::span<const Phase> phases) {
  const int64_t channels = w.extent(0), filters = w.extent(1);
  Extents sizes{static_cast<int64_t>(phases.size()) * filters, channels};
  sizes.insert(sizes.end(), phases.front().taps.begin(), phases.front().taps.end());
  Tensor result(w.dtype(), sizes);
  const auto bytes = static_cast<size_t>(w.element_size());
  const Extents strides = row_major_strides(w.extents());
  std::byte* to = result.mutable_bytes().data();
  for (int64_t i = 0; i < result.count(); ++i, to += bytes) {
    int64_t left = i, place = 0;
    const Phase& phase = phases[static_cast<size_t>(i / (result.count() / std::ssize(phases)))];
    for (size_t dim = slides.size(); dim-- > 0;) {
      const int64_t tap = left % phase.taps[dim];
      left /= phase.taps[dim];
      place += ((phase.taps[dim] - 1 - tap) * slides[dim].stride + phase.at[dim]) * strides[dim + 2];
    }
    place += left % channels * strides[0] + left / channels % filters * strides[1];
    std::memcpy(to, w.bytes().data() + static_cast<size_t>(place) * bytes, bytes);
  }
  return result;
}

Value convolve(Value x, const Tensor& w, const std::vector<Slide>& slides, std::span<const Phase> phases) {
  const std::vector<int64_t> ones(slides.size(), 1);
  std::vector<int64_t> pads;
  for (int64_t taps : phases.front().taps)
    pads.push_back(taps - 1);
  for (const Slide& slide : slides)
    pads.push_back(slide.turns() - slide.size);
  return x.graph()
      .create("conv", {{"x", x}, {"w", constant(x.graph(), gathered(w, slides, phases))}},
              {{"strides", ones}, {"dilations", ones}, {"pads", pads}, {"groups", int64_t{1}}})
      ->result();
}

// [batch, strides…, filters, turns…] with the results of each dimension between each other.
Value put_between(Value y, int64_t filters, const std::vector<Slide>& slides) {
  const auto rank = static_cast<int64_t>(slides.size());
  std::vector<int64_t> apart{-1}, order{0, rank + 1}, together{-1, filters};
  for (const Slide& slide : slides)
    apart.push_back(slide.stride);
  apart.push_back(filters);
  for (int64_t i = 0; i < rank; ++i) {
    const Slide& slide = slides[static_cast<size_t>(i)];
    apart.push_back(slide.turns());
    order.insert(order.end(), {rank + 2 + i, 1 + i});
    together.push_back(slide.turns() * slide.stride);
  }
  return reshape(transpose(reshape(y, apart), order), together);
}

std::optional<Value> convolution_for(const Node& node) {
  const Value x = node.in("x"), w = node.in("w");
  const Literal* literal = literal_of(w);
  if (literal == nullptr || literal->count() == 0 || node.attr("groups").as<int64_t>() != 1 || x.rank() < 3)
    return std::nullopt;
  const std::optional<std::vector<Slide>> slides = slides_of(node);
  if (!slides)
    return std::nullopt;
  const WithSources sources(node);
  const std::vector<Phase> phases = phases_of(*slides);
  std::vector<Value> results;
  for (std::span<const Phase> left = phases; !left.empty();) {
    const auto end = std::ranges::find_if(left, [&](const Phase& each) { return each.taps != left[0].taps; });
    const auto count = static_cast<size_t>(end - left.begin());
    results.push_back(convolve(x, literal->tensor(), *slides, left.first(count)));
    left = left.subspan(count);
  }
  Value y = results.size() == 1 ? results.front() : concat(results, 1);
  y = put_between(y, literal->extents()[1], *slides);
  for (size_t i = 0; i < slides->size(); ++i)
    if (const Slide& slide = (*slides)[i]; slide.before != 0 || slide.turns() * slide.stride != slide.result)
      y = slice(y, static_cast<int64_t>(i) + 2, slide.before, slide.before + slide.result);
  return y;
}

}  // namespace

void gather_convolutions(Graph& graph) {
  for (Node* node : graph.nodes()) {
    if (!node->is("conv_transpose"))
      continue;
    const InsertBefore here(node);
    if (const std::optional<Value> y = convolution_for(*node); y && y->type() == node->result().type())
      graph.replace(node, {*y});
  }
}

}  // namespace tenon
