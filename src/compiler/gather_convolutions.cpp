#include "compiler/gather_convolutions.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "ops/convolve.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace tenon {
namespace {

// The weights that reach the results at stride * q + a, for one a, along one spatial dimension.
struct Reach {
  int64_t first = 0, taps = 0;  // the first such weight, and how many there are
  int64_t back = 0;             // the first one takes element q - back of the image

  bool operator==(const Reach& other) const { return taps == other.taps && back == other.back; }
};

// Along one spatial dimension.
struct Slide {
  int64_t stride, dilation, kernel;
  int64_t before;        // how many results the padding takes away at the beginning
  int64_t size, result;  // of the image, and of what is made of it

  // Turns begin with the first whose results are not all taken away.
  int64_t first_turn() const { return before / stride; }
  int64_t taken_away() const { return before % stride; }
  int64_t turns() const { return (taken_away() + result - 1) / stride + 1; }

  // The weights of one Reach, and the elements that they take, are so far apart.
  int64_t weight_step() const { return stride / std::gcd(stride, dilation); }
  int64_t element_step() const { return dilation / std::gcd(stride, dilation); }

  // By a.
  std::vector<Reach> reaches() const {
    std::vector<Reach> reaches(static_cast<size_t>(stride));
    for (int64_t first = 0; first < std::min(kernel, weight_step()); ++first)
      reaches[static_cast<size_t>(first * dilation % stride)] = {
          first, (kernel - first - 1) / weight_step() + 1, first * dilation / stride};
    return reaches;
  }

  // What a convolution by these weights needs around the image, before and after; negative where some of the
  // image reaches no result.
  int64_t pad_before(const Reach& reach) const {
    return reach.back + (reach.taps - 1) * element_step() - first_turn();
  }
  int64_t pad_after(const Reach& reach) const { return first_turn() + turns() - size - reach.back; }

  bool sees_image(const Reach& reach) const {
    return reach.taps == 0 ||
           size + std::min<int64_t>(pad_before(reach), 0) + std::min<int64_t>(pad_after(reach), 0) > 0;
  }
};

// One of the convolutions: what reaches its results along each spatial dimension.
using Phase = std::vector<Reach>;

bool is_reached(const Phase& phase) {
  return std::ranges::all_of(phase, [](const Reach& reach) { return reach.taps > 0; });
}

std::optional<std::vector<Slide>> slides_of(const Node& node) {
  const Value x = node.in("x"), w = node.in("w"), y = node.result();
  const std::vector<int64_t>&strides = node.attr("strides"), &dilations = node.attr("dilations"),
        &pads = node.attr("pads");
  std::vector<Slide> slides;
  for (int64_t i = 2; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i - 2);
    const std::optional<int64_t> size = x.dim(i).constant(), result = y.dim(i).constant();
    // Whole turns would take more memory than the results where a stride is longer than those.
    if (!size || !result || *result < strides[at])
      return std::nullopt;
    slides.push_back({strides[at], dilations[at], *w.dim(i).constant(), pads[at], *size, *result});
  }
  return slides;
}

// The last dimension fastest; nothing where the padding leaves nothing of the image to some of them.
std::optional<std::vector<Phase>> phases_of(const std::vector<Slide>& slides) {
  std::vector<Phase> phases{{}};
  for (const Slide& slide : slides) {
    const std::vector<Reach> reaches = slide.reaches();
    if (!std::ranges::all_of(reaches, [&](const Reach& reach) { return slide.sees_image(reach); }))
      return std::nullopt;
    std::vector<Phase> more;
    for (const Phase& phase : phases)
      for (const Reach& reach : reaches) {
        more.push_back(phase);
        more.back().push_back(reach);
      }
    phases = std::move(more);
  }
  return phases;
}

// A transposed convolution with all that is known of it.
struct Gathered {
  Value x;
  Tensor w;  // [channels, filters of a group, kernel…]
  int64_t groups;
  std::vector<Slide> slides;

  int64_t filters() const { return w.extent(1); }  // of a group

  Value make(const std::vector<Phase>& phases) const;
  Tensor weights_of(std::span<const Phase> phases) const;
  Value convolve(std::span<const Phase> phases) const;
  Value with_groups_apart(Value y, int64_t phases) const;
  Value put_between(Value y) const;
};

// [groups, phases and filters; channels of a group, taps…], where the first weight comes last.
Tensor Gathered::weights_of(std::span<const Phase> phases) const {
  const int64_t channels = w.extent(0) / groups, count = std::ssize(phases);
  Extents sizes{groups * count * filters(), channels};
  for (const Reach& reach : phases.front())
    sizes.push_back(reach.taps);
  Tensor result(w.dtype(), sizes);
  const auto bytes = static_cast<size_t>(w.element_size());
  const Extents strides = row_major_strides(w.extents());
  const int64_t of_filter = result.count() / result.extent(0);
  std::byte* to = result.mutable_bytes().data();
  for (int64_t i = 0; i < result.count(); ++i, to += bytes) {
    const int64_t filter = i / of_filter, group = filter / (count * filters());
    const Phase& phase = phases[static_cast<size_t>(filter / filters() % count)];
    int64_t left = i % of_filter, place = filter % filters() * strides[1];
    for (size_t dim = slides.size(); dim-- > 0;) {
      const Reach& reach = phase[dim];
      const int64_t tap = reach.taps - 1 - left % reach.taps;
      left /= reach.taps;
      place += (reach.first + tap * slides[dim].weight_step()) * strides[dim + 2];
    }
    place += (group * channels + left) * strides[0];
    std::memcpy(to, w.bytes().data() + static_cast<size_t>(place) * bytes, bytes);
  }
  return result;
}

// [batch, groups and phases and filters, turns…]
Value Gathered::convolve(std::span<const Phase> phases) const {
  Value image = x;
  std::vector<int64_t> before, after, steps;
  for (size_t dim = 0; dim < slides.size(); ++dim) {
    const Slide& slide = slides[dim];
    const int64_t first = slide.pad_before(phases.front()[dim]), last = slide.pad_after(phases.front()[dim]);
    if (first < 0 || last < 0)
      image = slice(image, static_cast<int64_t>(dim) + 2, std::max<int64_t>(-first, 0),
                    slide.size + std::min<int64_t>(last, 0));
    before.push_back(std::max<int64_t>(first, 0));
    after.push_back(std::max<int64_t>(last, 0));
    steps.push_back(slide.element_step());
  }
  before.insert(before.end(), after.begin(), after.end());
  const std::vector<int64_t> ones(slides.size(), 1);
  return x.graph()
      .create("conv", {{"x", image}, {"w", constant(x.graph(), weights_of(phases))}},
              {{"strides", ones}, {"dilations", steps}, {"pads", before}, {"groups", groups}})
      ->result();
}

// [batch, groups, phases and filters, turns…]
Value Gathered::with_groups_apart(Value y, int64_t phases) const {
  std::vector<int64_t> sizes{-1, groups, phases * filters()};
  for (const Slide& slide : slides)
    sizes.push_back(slide.turns());
  return reshape(y, sizes);
}

// [batch, groups, strides…, filters, turns…] with the results of each dimension between each other.
Value Gathered::put_between(Value y) const {
  const auto rank = static_cast<int64_t>(slides.size());
  std::vector<int64_t> apart{-1, groups}, order{0, 1, rank + 2}, together{-1, groups * filters()};
  for (const Slide& slide : slides)
    apart.push_back(slide.stride);
  apart.push_back(filters());
  for (int64_t i = 0; i < rank; ++i) {
    const Slide& slide = slides[static_cast<size_t>(i)];
    apart.push_back(slide.turns());
    order.insert(order.end(), {rank + 3 + i, 2 + i});
    together.push_back(slide.turns() * slide.stride);
  }
  return reshape(transpose(reshape(y, apart), order), together);
}

Value Gathered::make(const std::vector<Phase>& phases) const {
  if (phases.size() == 1)
    return convolve(phases);
  std::vector<Value> parts;
  for (std::span<const Phase> left = phases; !left.empty();) {
    const auto end = std::ranges::find_if(left, [&](const Phase& each) { return each != left.front(); });
    const auto count = static_cast<size_t>(end - left.begin());
    // The first phase is that of the first weight, so there is something before those that nothing reaches.
    if (is_reached(left.front()))
      parts.push_back(with_groups_apart(convolve(left.first(count)), std::ssize(left.first(count))));
    else
      parts.back() =
          pad(parts.back(), int_vector(x.graph(), {0, static_cast<int64_t>(count) * filters()}), {2});
    left = left.subspan(count);
  }
  Value y = put_between(parts.size() == 1 ? parts.front() : concat(parts, 2));
  for (size_t i = 0; i < slides.size(); ++i)
    if (const Slide& slide = slides[i];
        slide.taken_away() != 0 || slide.turns() * slide.stride != slide.result)
      y = slice(y, static_cast<int64_t>(i) + 2, slide.taken_away(), slide.taken_away() + slide.result);
  return y;
}

std::optional<Value> convolution_for(const Node& node) {
  const Literal* literal = literal_of(node.in("w"));
  if (literal == nullptr || literal->count() == 0)
    return std::nullopt;
  const std::optional<std::vector<Slide>> slides = slides_of(node);
  if (!slides)
    return std::nullopt;
  const std::optional<std::vector<Phase>> phases = phases_of(*slides);
  if (!phases)
    return std::nullopt;
  const WithSources sources(node);
  return Gathered{node.in("x"), literal->tensor(), node.attr("groups"), *slides}.make(*phases);
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
