#include "compiler/gather_convolutions.h"

#include <cstring>
#include <numeric>

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

  int64_t taps() const { return kernel / stride; }  // weights that reach one result
  int64_t turns() const { return (result - 1 + before) / stride + 1; }
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
    if (slide.turns() < *size || slide.before < 0)
      return std::nullopt;  // some of the image reaches no result
    // Else some filters would have zeros in place of weights, which cost time, and make NaN of infinities.
    if (slide.kernel % slide.stride != 0)
      return std::nullopt;
  }
  return slides;
}

// [channels, filters, kernel…] as [strides…, filters; channels, taps…], where the first weight comes last.
Tensor gathered(const Tensor& w, const std::vector<Slide>& slides) {
  const int64_t channels = w.extent(0), filters = w.extent(1);
  Extents sizes{filters, channels};
  for (const Slide& slide : slides)
    sizes.push_back(slide.taps());
  for (const Slide& slide : slides)
    sizes[0] *= slide.stride;
  Tensor result(w.dtype(), sizes);
  const auto bytes = static_cast<size_t>(w.element_size());
  const Extents strides = row_major_strides(sizes);
  std::byte* to = result.mutable_bytes().data();
  for (int64_t i = 0; i < w.count(); ++i) {
    int64_t left = i, place = 0, phase = 0, phases = 1;
    for (size_t dim = slides.size(); dim-- > 0;) {
      const Slide& slide = slides[dim];
      const int64_t at = left % slide.kernel;
      left /= slide.kernel;
      place += (slide.taps() - 1 - at / slide.stride) * strides[dim + 2];
      phase += at % slide.stride * phases;
      phases *= slide.stride;
    }
    place += (phase * filters + left % filters) * strides[0] + left / filters * strides[1];
    std::memcpy(to + static_cast<size_t>(place) * bytes, w.bytes().data() + static_cast<size_t>(i) * bytes,
                bytes);
  }
  return result;
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

std::optional<Value> convolution_for(Graph& graph, const Node& node) {
  const Value x = node.in("x"), w = node.in("w");
  const Literal* literal = literal_of(w);
  if (literal == nullptr || literal->count() == 0 || node.attr("groups").as<int64_t>() != 1 || x.rank() < 3)
    return std::nullopt;
  const std::optional<std::vector<Slide>> slides = slides_of(node);
  if (!slides)
    return std::nullopt;
  const WithSources sources(node);
  const std::vector<int64_t> ones(slides->size(), 1);
  std::vector<int64_t> pads;
  for (const Slide& slide : *slides)
    pads.push_back(slide.taps() - 1);
  for (const Slide& slide : *slides)
    pads.push_back(slide.turns() - slide.size);
  Value y = graph
                .create("conv", {{"x", x}, {"w", constant(graph, gathered(literal->tensor(), *slides))}},
                        {{"strides", ones}, {"dilations", ones}, {"pads", pads}, {"groups", int64_t{1}}})
                ->result();
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
    if (const std::optional<Value> y = convolution_for(graph, *node); y && y->type() == node->result().type())
      graph.replace(node, {*y});
  }
}

}  // namespace tenon
