#include "ops/window.h"

#include <algorithm>

#include "ir/size_condition.h"
#include "ops/shapes.h"
#include "ops/words.h"

namespace tenon {
namespace {

// Far beyond any model, and small enough for sums and products of a few of them with a size.
constexpr int64_t kLargestStep = (int64_t{1} << 31) - 1;

Padding padding_of(const Node& n) {
  if (n.op().find_attribute("padding") == nullptr)
    return Padding::Explicit;
  return named<Padding>(n, "padding",
                        {{"explicit", Padding::Explicit},
                         {"same_upper", Padding::SameUpper},
                         {"same_lower", Padding::SameLower}});
}

Dim extent_of(const Slide& slide, const Dim& kernel) { return (kernel - 1) * slide.dilation + 1; }

// An attribute of a node that is not checked yet; null where it is not given, or something else is.
template <class T>
const T* find_given(const Node& n, std::string_view name, AttributeKind kind) {
  const auto it = n.attributes().find(name);
  return it == n.attributes().end() || it->second.kind() != kind ? nullptr : &it->second.as<T>();
}

// How many spatial dimensions a node has that is not checked yet, for the defaults of its attributes.
size_t spatial_rank(const Node& n) {
  if (const auto* kernel = find_given<Attribute::Ints>(n, "kernel", AttributeKind::Ints))
    return kernel->size();
  for (const OperandDecl& decl : n.op().operands)
    for (Value value : n.ins(decl.name)) {
      if (!value.type().is_tensor() || !value.shape().ranked() || value.rank() == 0)
        continue;
      if (decl.name == "image_shape" && value.shape()[0].is_constant())
        return static_cast<size_t>(*value.shape()[0].constant());
      if ((decl.name == "x" || decl.name == "w") && n.op().find_operand("w") != nullptr && value.rank() >= 2)
        return static_cast<size_t>(value.rank() - 2);
    }
  throw user_error("{}: strides, dilations and pads must be given where the rank is dynamic", n.op().name);
}

}  // namespace

const std::vector<int64_t>& checked_list(const Node& n, std::string_view name, size_t count, int64_t least) {
  const std::vector<int64_t>& list = n.attr(name);
  if (list.size() != count)
    throw operand_error(
        n, fmt::format("{} is [{}], but must have {} elements", name, fmt::join(list, ","), count));
  for (int64_t each : list)
    if (each < least || each > kLargestStep)
      throw user_error("{}: {} is [{}], but its elements must be from {} to {}", n.op().name, name,
                       fmt::join(list, ","), least, kLargestStep);
  return list;
}

Attribute spatial_zeros(const Node& n) { return Attribute::Ints(spatial_rank(n), 0); }

std::vector<AttributeDecl> with_window(std::vector<AttributeDecl> own) {
  const ComputedDefault ones = {
      "ones", [](const Node& n) -> Attribute { return Attribute::Ints(spatial_rank(n), 1); }};
  const ComputedDefault zeros = {"zeros", [](const Node& n) -> Attribute {
                                   const auto* padding =
                                       find_given<std::string>(n, "padding", AttributeKind::String);
                                   const bool is_explicit = padding == nullptr || *padding == "explicit";
                                   return Attribute::Ints(is_explicit ? 2 * spatial_rank(n) : 0, 0);
                                 }};
  own.insert(own.end(),
             {{"strides", AttributeKind::Ints, "how far a window is from the one before, in each dimension",
               std::nullopt, Binding::Early, ones},
              {"dilations", AttributeKind::Ints, "how far a cell is from the one before, in each dimension",
               std::nullopt, Binding::Early, ones},
              {"pads", AttributeKind::Ints,
               "the cells added before each spatial dimension, then those after each; none unless explicit",
               Attribute::Ints(), Binding::Early, zeros}});
  return own;
}

std::vector<AttributeDecl> with_padded_window(std::vector<AttributeDecl> own) {
  own = with_window(std::move(own));
  own.push_back({"padding", AttributeKind::String,
                 "explicit, or as much as lets ceil(size / stride) windows fit: same_upper, same_lower",
                 "explicit"});
  return own;
}

void add_window(Attributes& attributes, const WindowOptions& window) {
  const auto add = [&](const char* name, const std::vector<int64_t>& list) {
    if (!list.empty())
      attributes.insert({name, list});
  };
  add("strides", window.strides);
  add("dilations", window.dilations);
  add("pads", window.pads);
}

Window window_of(const Node& n, int64_t spatial_rank) {
  const auto rank = static_cast<size_t>(spatial_rank);
  const std::vector<int64_t>& strides = checked_list(n, "strides", rank, 1);
  const std::vector<int64_t>& dilations = checked_list(n, "dilations", rank, 1);
  Window window;
  window.padding = padding_of(n);
  const bool is_explicit = window.padding == Padding::Explicit;
  const std::vector<int64_t>& pads = checked_list(n, "pads", is_explicit ? 2 * rank : 0, 0);
  for (size_t i = 0; i < rank; ++i)
    window.slides.push_back({.stride = strides[i],
                             .dilation = dilations[i],
                             .before = is_explicit ? pads[i] : 0,
                             .after = is_explicit ? pads[rank + i] : 0});
  return window;
}

std::vector<Dim> count_windows(const Node& n, const Window& window, std::span<const Dim> sizes,
                               std::span<const Dim> kernel, Rounding rounding) {
  std::vector<Dim> counts;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Slide& slide = window.slides[i];
    const Dim extent = extent_of(slide, kernel[i]), padded = sizes[i] + slide.before + slide.after;
    assume_at_most(1, kernel[i]);
    for (const Dim& size : {sizes[i], kernel[i], extent})
      assume_at_most(size, kLargestWindowed);
    if (kernel[i].is_constant() && *kernel[i].constant() <= 0)
      throw operand_error(n, fmt::format("the kernel has {} cells in spatial dimension {}", kernel[i], i));
    if (std::max(sizes[i].constant().value_or(0), kernel[i].constant().value_or(0)) > kLargestWindowed ||
        extent.constant().value_or(0) > kLargestWindowed)
      throw operand_error(n, fmt::format("spatial dimension {} is too large for a window", i));
    if (window.padding != Padding::Explicit) {
      counts.push_back(ceil_div(sizes[i], slide.stride));
      continue;
    }
    assume_at_most(extent, padded);
    if (extent.is_constant() && padded.is_constant() && *extent.constant() > *padded.constant())
      throw operand_error(
          n, fmt::format("a window of {} does not fit into spatial dimension {} of x: {}{}", extent, i,
                         sizes[i], padded == sizes[i] ? "" : fmt::format(", with padding {}", padded)));
    counts.push_back(rounding == Rounding::Down
                         ? floor_div(padded - extent, slide.stride) + 1
                         : min(ceil_div(padded - extent, slide.stride) + 1,
                               floor_div(sizes[i] + slide.before - 1, slide.stride) + 1));
  }
  return counts;
}

Extents count_windows(const Node& n, const Window& window, const Extents& sizes, const Extents& kernel,
                      Rounding rounding) {
  Extents counts;
  for (const Dim& count : count_windows(n, window, std::vector<Dim>(sizes.begin(), sizes.end()),
                                        std::vector<Dim>(kernel.begin(), kernel.end()), rounding)) {
    if (!count.is_constant())
      throw user_error("{}: windows of [{}] over [{}] are too large to be counted", n.op().name,
                       fmt::join(kernel, ","), fmt::join(sizes, ","));
    counts.push_back(*count.constant());
  }
  return counts;
}

std::pair<int64_t, int64_t> resolve_padding(const Slide& slide, Padding padding, int64_t size,
                                            int64_t kernel) {
  if (padding == Padding::Explicit)
    return {slide.before, slide.after};
  const int64_t last_start = size == 0 ? 0 : (size - 1) / slide.stride * slide.stride;
  const int64_t total = std::max<int64_t>(last_start + (kernel - 1) * slide.dilation + 1 - size, 0);
  const int64_t less = total / 2, more = total - less;
  return padding == Padding::SameUpper ? std::pair(less, more) : std::pair(more, less);
}

Sliding::Sliding(const Window& window, const Extents& sizes, const Extents& kernel, const Extents& counts)
    : slides_(window.slides), sizes_(sizes), kernel_(kernel), counts_(counts), reaches_(sizes.size()) {
  // Without elements no cell falls on any, however many there are.
  const bool any = std::find(sizes.begin(), sizes.end(), 0) == sizes.end();
  for (size_t i = 0; i < sizes.size(); ++i) {
    Slide& slide = slides_[i];
    std::tie(slide.before, slide.after) = resolve_padding(slide, window.padding, sizes[i], kernel[i]);
    for (int64_t cell = 0; any && cell < kernel[i]; ++cell) {
      const int64_t start = cell * slide.dilation - slide.before;  // where window 0 has it
      if (start >= sizes[i])
        break;
      const int64_t first = start >= 0 ? 0 : (-start + slide.stride - 1) / slide.stride;
      const int64_t end = std::min(counts[i], (sizes[i] - 1 - start) / slide.stride + 1);
      if (first < end)
        reaches_[i].push_back({cell, first, end - first, first * slide.stride + start});
    }
  }
}

int64_t Sliding::count_cells(size_t axis, int64_t index, bool with_padding) const {
  const Slide& slide = slides_[axis];
  const int64_t start = index * slide.stride - slide.before;
  const int64_t from = with_padding ? -slide.before : 0, to = sizes_[axis] + (with_padding ? slide.after : 0);
  // The cells before a place.
  const auto cells_before = [&](int64_t place) {
    return place <= start ? 0
                          : std::min((place - start + slide.dilation - 1) / slide.dilation, kernel_[axis]);
  };
  return std::max<int64_t>(cells_before(to) - cells_before(from), 0);
}

}  // namespace tenon
