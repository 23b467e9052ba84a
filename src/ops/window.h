// window.h — a window that slides over the spatial dimensions of a tensor: what convolutions, pools and
// col2im share.
//
// Tensors are [batch, channels, spatial…]. Along each spatial dimension a window has `kernel` cells,
// `dilation` apart; window i puts its cell j on element i·stride + j·dilation - before.
#pragma once

#include "ir/evaluate.h"

namespace tenon {

enum class Padding : uint8_t {
  Explicit,   // as `pads` says
  SameUpper,  // as much as lets ceil(size / stride) windows fit; an odd cell goes after the elements
  SameLower,  // or before them
};

struct Slide {  // along one dimension
  int64_t stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // the padding, where it is explicit
};

struct Window {
  std::vector<Slide> slides;
  Padding padding = Padding::Explicit;
};

// The attributes of an op with a window, for its declaration, after those of its own: strides, dilations and
// pads, or those and padding, which says whether pads are explicit. Each may be left out.
std::vector<AttributeDecl> with_window(std::vector<AttributeDecl> own);
std::vector<AttributeDecl> with_padded_window(std::vector<AttributeDecl> own);

// The same for those who make such nodes; what is empty is left out.
struct WindowOptions {
  std::vector<int64_t> strides = {}, dilations = {}, pads = {};
};
void add_window(Attributes& attributes, const WindowOptions& window);

// A 0 for each spatial dimension of a node with a window.
Attribute spatial_zeros(const Node& n);

// The ints that an attribute of a node lists; a wrong number of them, or one that is below `least` or beyond
// reason, is the user's fault.
const std::vector<int64_t>& checked_list(const Node& n, std::string_view name, size_t count, int64_t least);

// What the attributes of a node say.
Window window_of(const Node& n, int64_t spatial_rank);

enum class Rounding : bool {
  Down,  // windows lie inside the padded elements
  Up,    // the last may stand out, if it starts before the padding at the end does
};

// The number of windows along each dimension. A kernel that does not fit is an operand_error.
constexpr int64_t kLargestWindowed = int64_t{1} << 48;  // elements along one dimension
std::vector<Dim> count_windows(const Node& n, const Window& window, std::span<const Dim> sizes,
                               std::span<const Dim> kernel, Rounding rounding = Rounding::Down);
// The same for sizes that are all known.
Extents count_windows(const Node& n, const Window& window, const Extents& sizes, const Extents& kernel,
                      Rounding rounding = Rounding::Down);

// The padding before and after, whatever the mode.
std::pair<int64_t, int64_t> resolve_padding(const Slide& slide, Padding padding, int64_t size,
                                            int64_t kernel);

// A window over elements of known sizes: which windows put which cell on which element.
class Sliding {
 public:
  Sliding(const Window& window, const Extents& sizes, const Extents& kernel, const Extents& counts);

  const Extents& counts() const { return counts_; }

  // Calls f(cell, for_each_row) for every cell of the kernel, in row-major order, that falls on an element in
  // any window. for_each_row(g) calls g(window, element, count, step) for runs of windows along the last
  // dimension: window + i has the cell on element + i·step, for 0 ≤ i < count, both counted row-major. So
  // padding costs nothing per element.
  template <class F>
  void for_each_cell(F&& f) const {
    std::vector<const Reach*> reaches(reaches_.size());
    visit_cells(0, 0, reaches, f);
  }

  // How many cells of window `index` of one dimension fall on elements, or on elements and padding.
  int64_t count_cells(size_t axis, int64_t index, bool with_padding) const;

 private:
  // The windows [first, first + count) of one dimension put `cell` on element, element + stride, …
  struct Reach {
    int64_t cell, first, count, element;
  };

  template <class F>
  void visit_cells(size_t axis, int64_t cell, std::vector<const Reach*>& reaches, F&& f) const {
    if (axis == reaches.size())
      return f(cell, [&](auto&& g) { visit_rows(0, 0, 0, reaches, g); });
    for (const Reach& reach : reaches_[axis]) {
      reaches[axis] = &reach;
      visit_cells(axis + 1, cell * kernel_[axis] + reach.cell, reaches, f);
    }
  }

  template <class G>
  void visit_rows(size_t axis, int64_t window, int64_t element, const std::vector<const Reach*>& reaches,
                  G&& g) const {
    const Reach& reach = *reaches[axis];
    window = window * counts_[axis] + reach.first;
    element = element * sizes_[axis] + reach.element;
    const int64_t stride = slides_[axis].stride;
    if (axis + 1 == reaches.size())
      return g(window, element, reach.count, stride);
    for (int64_t i = 0; i < reach.count; ++i)
      visit_rows(axis + 1, window + i, element + i * stride, reaches, g);
  }

  std::vector<Slide> slides_;  // with the padding resolved
  Extents sizes_, kernel_, counts_;
  std::vector<std::vector<Reach>> reaches_;  // by dimension
};

}  // namespace tenon
