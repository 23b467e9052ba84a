// lower_window.h — what the cells of a sliding window fall on, for lowering.
#pragma once

#include "ops/lower.h"
#include "ops/window.h"

namespace tenon {

// The element that a cell falls on, along each spatial axis, and whether there is one: nothing where there
// always is.
struct SeenElement {
  Index at;
  std::optional<Scalar> inside;
};

// Of a window whose padding is explicit. `windows` and `cells` say which window and which of its cells.
SeenElement seen_element(const Window& window, std::span<const Dim> sizes, std::span<const Scalar> windows,
                         std::span<const Scalar> cells, Rounding rounding = Rounding::Down);

// The other way round: the window that puts a cell on an element.
SeenElement window_on_element(const Window& window, std::span<const Dim> counts,
                              std::span<const Scalar> elements, std::span<const Scalar> cells);

}  // namespace tenon
