#include "passes/target/conv_transpose_to_conv.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "ops/binary.h"
#include "ops/convolve.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "target/target.h"

namespace tenon {

namespace {

// Longer strides and more convolutions than models have would take long to compile.
constexpr int64_t kLongestStride = 4096, kMostConvolutions = 32;

// The weights that reach the results at stride * q + a, for one a, along one spatial dimension.
struct Reach {
  int64_t first = 0, taps = 0;  // the first such weight, and how many there are
  int64_t back = 0;             // the first one takes element q - back of the image

  bool operator==(const Reach& other) const { return taps == other.taps && back == other.back; }
};

// Along one spatial dimension.
struct Slide {
  int64_t stride, dilation, kernel;
  int64_t before;    // how many results the padding takes away at the beginning
  Dim size, result;  // of the image, and of what is made of it

  // Steps begin with the first whose results are not all cropped.
  int64_t first_step() const { return before / stride; }
  int64_t taken_away() const { return before % stride; }
  Dim step_count() const { return floor_div(taken_away() + result - 1, stride) + 1; }
  // How many results are cropped at the end; nothing where that is dynamic.
  std::optional<int64_t> left_over() const {
    return (step_count() * stride - taken_away() - result).constant();
  }

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
    return reach.back + (reach.taps - 1) * element_step() - first_step();
  }
  std::optional<int64_t> pad_after(const Reach& reach) const {
    return (first_step() + step_count() - size - reach.back).constant();
  }

  // Whether padding surely leaves something of the image.
  bool sees_image(const Reach& reach) const {
    if (reach.taps == 0)
      return true;
    const std::optional<int64_t> after = pad_after(reach);
    const int64_t cut = std::max<int64_t>(-pad_before(reach), 0) + std::max<int64_t>(-after.value_or(0), 0);
    return after && (cut == 0 || size.constant().value_or(0) > cut);
  }
};

std::optional<std::vector<Slide>> slides_of(const Node& node) {
  const Value x = node.in("x"), w = node.in("w"), y = node.result();
  const std::vector<int64_t>&strides = node.attr("strides"), &dilations = node.attr("dilations"),
        &pads = node.attr("pads");
  std::vector<Slide> slides;
  for (int64_t i = 2; i < x.rank(); ++i) {
    const auto at = static_cast<size_t>(i - 2);
    const Slide slide{strides[at], dilations[at], *w.dim(i).constant(), pads[at], x.dim(i), y.dim(i)};
    // Whole steps would take more memory than the results where a stride is longer than those.
    if (slide.result.constant().value_or(slide.stride) < slide.stride || slide.stride > kLongestStride ||
        !slide.left_over())
      return std::nullopt;
    slides.push_back(slide);
  }
  return slides;
}

template <class T>
std::vector<T> in_order(std::vector<T> first, const std::vector<T>& second, const std::vector<T>& third) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

// So many, or so many times a tensor's dynamic size along an axis.
struct Size {
  int64_t number;
  std::optional<int64_t> axis = {};
};
Size size_of(const Dim& steps, int64_t times, int64_t axis) {
  return steps.is_constant() ? Size{*steps.constant() * times} : Size{times, axis};
}
Value reshape_to(Value x, const std::vector<Size>& sizes) {
  std::vector<Value> parts;
  for (const auto& [number, axis] : sizes) {
    const Value one = int_vector(x.graph(), {number});
    parts.push_back(axis ? size_along(x, *axis) * one : one);
  }
  return reshape(x, concat(parts, 0));
}

// For each spatial dimension, some of its reaches that follow each other.
using Phases = std::vector<std::span<const Reach>>;

// A transposed convolution whose sizes are known as far as they must be.
class Gathering {
 public:
  Gathering(Value x, Value w, int64_t groups, std::vector<Slide> slides)
      : x_(x),
        w_(w),
        channels_(*w.dim(0).constant()),
        filters_(*w.dim(1).constant()),
        groups_(groups),
        slides_(std::move(slides)),
        rank_(std::ssize(slides_)) {
    for (const Slide& slide : slides_)
      kernel_.push_back(slide.kernel);
    int64_t lanes = filters_;
    for (const Slide& slide : slides_) {
      reaches_.push_back(slide.reaches());
      lanes = std::min(lanes * slide.stride, kLeastChannels);
    }
    is_one_by_one_ = groups_ > 1 && lanes < kLeastChannels;
    has_channels_last_ = groups_ * filters_ >= kLeastChannels;
  }

  // Whether there are not too many convolutions, and padding leaves something of the image to each.
  bool is_possible() const {
    int64_t convolutions = 1;
    for (size_t dim = 0; dim < slides_.size(); ++dim) {
      int64_t parts = 0;
      for (std::span<const Reach> left = reaches_[dim]; !left.empty();
           left = left.subspan(count_alike(left))) {
        if (!slides_[dim].sees_image(left.front()))
          return false;
        parts += left.front().taps > 0 ? 1 : 0;
      }
      convolutions *= parts;
    }
    return convolutions <= kMostConvolutions;
  }

  Value make() const {
    if (std::ranges::all_of(reaches_, [](const auto& reaches) { return reaches.size() == 1; }))
      return convolve({reaches_.begin(), reaches_.end()});
    Value y = put_between(results_of({}));
    for (size_t i = 0; i < slides_.size(); ++i)
      if (const Slide& slide = slides_[i]; slide.taken_away() != 0 || *slide.left_over() != 0)
        y = slice(y, static_cast<int64_t>(i) + 2, slide.taken_away(),
                  *slide.left_over() == 0 ? INT64_MAX : -*slide.left_over());
    return y;
  }

 private:
  // Of the phases of the first dimensions and all of the others: [batch, steps…, groups, phases…, filters],
  // or [batch, groups, phases…, filters, steps…].
  Value results_of(const Phases& first) const {
    if (first.size() == slides_.size())
      return take_apart(convolve(first), first);
    const int64_t axis = first_phases_axis() + std::ssize(first);
    std::vector<Value> parts;
    for (std::span<const Reach> left = reaches_[first.size()]; !left.empty();) {
      const std::span<const Reach> alike = left.first(count_alike(left));
      if (alike.front().taps > 0) {
        Phases phases = first;
        phases.push_back(alike);
        parts.push_back(results_of(phases));
      } else {
        // Not the first part, which is that of the first weight.
        parts.back() = pad(parts.back(), int_vector(x_.graph(), {0, std::ssize(alike)}), {axis});
      }
      left = left.subspan(alike.size());
    }
    return parts.size() == 1 ? parts.front() : concat(parts, axis);
  }

  // How many of the first may be one convolution.
  size_t count_alike(std::span<const Reach> reaches) const {
    if (is_one_by_one_ && reaches.front().taps > 0)
      return 1;
    const auto end =
        std::ranges::find_if(reaches, [&](const Reach& each) { return each != reaches.front(); });
    return static_cast<size_t>(end - reaches.begin());
  }

  // [batch, groups and phases and filters, steps…]
  Value convolve(const Phases& phases) const {
    Value image = x_;
    std::vector<int64_t> before, after, steps;
    for (size_t dim = 0; dim < slides_.size(); ++dim) {
      const Slide& slide = slides_[dim];
      const Reach& reach = phases[dim].front();
      const int64_t first = slide.pad_before(reach), last = *slide.pad_after(reach);
      if (first < 0 || last < 0)
        image = slice(image, static_cast<int64_t>(dim) + 2, std::max<int64_t>(-first, 0),
                      last < 0 ? last : INT64_MAX);
      before.push_back(std::max<int64_t>(first, 0));
      after.push_back(std::max<int64_t>(last, 0));
      steps.push_back(slide.element_step());
    }
    before.insert(before.end(), after.begin(), after.end());
    const std::vector<int64_t> ones(slides_.size(), 1);
    return x_.graph()
        .create("conv", {{"x", image}, {"w", weights_of(phases)}},
                {{"strides", ones}, {"dilations", steps}, {"pads", before}, {"groups", groups_}})
        ->result();
  }

  // [groups and phases and filters, channels of a group, taps…], where the first weight comes last.
  Value weights_of(const Phases& phases) const {
    const int64_t channels = channels_ / groups_, kernel = element_count(kernel_);
    const std::vector<int64_t> cells = cells_of(phases);
    std::vector<int64_t> sizes{-1, channels};
    int64_t taps = 1;
    for (std::span<const Reach> alike : phases) {
      sizes.push_back(alike.front().taps);
      taps *= alike.front().taps;
    }
    const Value of_cells =
        gather(reshape(w_, {groups_, channels, filters_, kernel}), int_vector(w_.graph(), cells), 3);
    const Value apart = reshape(of_cells, {groups_, channels, filters_, -1, taps});
    return reshape(transpose(apart, {0, 3, 2, 1, 4}), sizes);
  }

  // The places in a kernel of what these phases take, phase by phase.
  std::vector<int64_t> cells_of(const Phases& phases) const {
    const Extents strides = row_major_strides(kernel_);
    std::vector<int64_t> cells{0};
    const auto add = [&](int64_t count, const auto& place) {
      std::vector<int64_t> more;
      for (const int64_t cell : cells)
        for (int64_t i = 0; i < count; ++i)
          more.push_back(cell + place(i));
      cells = std::move(more);
    };
    for (size_t dim = 0; dim < slides_.size(); ++dim)
      add(std::ssize(phases[dim]),
          [&](int64_t phase) { return phases[dim][static_cast<size_t>(phase)].first * strides[dim]; });
    for (size_t dim = 0; dim < slides_.size(); ++dim) {
      const int64_t last = phases[dim].front().taps - 1;
      add(last + 1, [&](int64_t tap) { return (last - tap) * slides_[dim].weight_step() * strides[dim]; });
    }
    return cells;
  }

  // [batch, groups and phases and filters, steps…] with all apart.
  Value take_apart(Value y, const Phases& phases) const {
    std::vector<Size> steps, channels{{outer_groups()}};
    for (std::span<const Reach> alike : phases)
      channels.push_back({std::ssize(alike)});
    channels.push_back({inner_filters()});
    for (const Slide& slide : slides_)
      steps.push_back(size_of(slide.step_count(), 1, std::ssize(steps) + (has_channels_last_ ? 1 : 2)));
    if (has_channels_last_)
      return reshape_to(transpose(y, channels_moved_last()), in_order({{-1}}, steps, channels));
    return reshape_to(y, in_order({{-1}}, channels, steps));
  }

  // The phases of each dimension interleaved with its steps: [batch, groups and filters, results…].
  Value put_between(Value y) const {
    const int64_t channels = groups_ * filters_;
    std::vector<int64_t> places;
    std::vector<Size> sizes;
    for (int64_t i = 0; i < rank_; ++i) {
      const Slide& slide = slides_[static_cast<size_t>(i)];
      places.insert(places.end(), {first_steps_axis() + i, first_phases_axis() + i});
      sizes.push_back(size_of(slide.step_count(), slide.stride, 2 * i + (has_channels_last_ ? 1 : 3)));
    }
    const std::vector<int64_t> of_channels{first_phases_axis() - 1, first_phases_axis() + rank_};
    if (!has_channels_last_)
      return reshape_to(transpose(y, in_order({0}, of_channels, places)),
                        in_order({{-1}}, {{channels}}, sizes));
    y = reshape_to(transpose(y, in_order({0}, places, of_channels)), in_order({{-1}}, sizes, {{channels}}));
    return transpose(y, channels_moved_first());
  }

  // A single phase has the filters of all groups contiguous.
  int64_t outer_groups() const { return is_one_by_one_ ? 1 : groups_; }
  int64_t inner_filters() const { return filters_ * (is_one_by_one_ ? groups_ : 1); }

  int64_t first_steps_axis() const { return has_channels_last_ ? 1 : rank_ + 3; }
  int64_t first_phases_axis() const { return has_channels_last_ ? rank_ + 2 : 2; }

  std::vector<int64_t> channels_moved_last() const {
    std::vector<int64_t> order(static_cast<size_t>(rank_) + 2);
    std::iota(order.begin() + 1, order.end() - 1, 2);
    order.back() = 1;
    return order;
  }
  std::vector<int64_t> channels_moved_first() const {
    std::vector<int64_t> order(static_cast<size_t>(rank_) + 2);
    std::iota(order.begin() + 2, order.end(), 1);
    order[1] = rank_ + 1;
    return order;
  }

  Value x_, w_;                 // the second: [channels, filters of a group, kernel…]
  int64_t channels_, filters_;  // of all groups, and of one
  Extents kernel_;
  int64_t groups_;
  std::vector<Slide> slides_;
  int64_t rank_;
  std::vector<std::vector<Reach>> reaches_;  // by dimension
  // Groups of few filters, as of a depthwise convolution, would leave vectors half empty, where one phase of
  // all groups fills them.
  bool is_one_by_one_ = false;
  // Where the result has enough channels to lie in memory like that, as convolutions leave theirs, copies
  // are contiguous.
  bool has_channels_last_ = false;
};

std::optional<Value> convolution_for(const Node& node, const Journal& journal) {
  const Value w = node.in("w");
  const std::optional<Extents> extents = w.shape().extents();
  if (!extents || element_count(*extents) == 0 ||
      (literal_of(w) == nullptr && !journal.allows(Numerics::Reassociates)))
    return std::nullopt;
  std::optional<std::vector<Slide>> slides = slides_of(node);
  if (!slides)
    return std::nullopt;
  const Gathering gathering(node.in("x"), w, node.attr("groups"), std::move(*slides));
  if (!gathering.is_possible())
    return std::nullopt;
  const WithSources sources(node);
  return gathering.make();
}

}  // namespace

void conv_transpose_to_conv(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    if (!node->is("conv_transpose"))
      continue;
    const InsertBefore here(node);
    if (const std::optional<Value> y = convolution_for(*node, journal);
        y && y->type() == node->result().type()) {
      if (!journal.is_open())
        return;
      journal.applied("conv-transpose-to-conv", {node}, Numerics::Reassociates);
      graph.replace(node, {*y});
    }
  }
}

}  // namespace tenon
