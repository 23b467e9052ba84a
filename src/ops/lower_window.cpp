#include "ops/lower_window.h"

namespace tenon {

SeenElement seen_element(const Window& window, std::span<const Dim> sizes, std::span<const Scalar> windows,
                         std::span<const Scalar> cells, Rounding rounding) {
  SeenElement seen;
  const auto require = [&](const Scalar& condition) {
    seen.inside = seen.inside ? *seen.inside && condition : condition;
  };
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Slide& slide = window.slides[i];
    const Scalar at =
        Scalar::index(windows[i].index() * slide.stride + cells[i].index() * slide.dilation - slide.before);
    if (slide.before > 0)
      require(less_equal(Scalar::zero(DType::I64), at));
    if (slide.after > 0 || rounding == Rounding::Up)
      require(less(at, Scalar::index(sizes[i])));
    seen.at.push_back(at);
  }
  return seen;
}

SeenElement window_on_element(const Window& window, std::span<const Dim> counts,
                              std::span<const Scalar> elements, std::span<const Scalar> cells) {
  SeenElement seen;
  const auto require = [&](const Scalar& condition) {
    seen.inside = seen.inside ? *seen.inside && condition : condition;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const Slide& slide = window.slides[i];
    const Dim distance = elements[i].index() + slide.before - cells[i].index() * slide.dilation;
    if (slide.stride > 1)
      require(equal(Scalar::index(mod(distance, slide.stride)), Scalar::zero(DType::I64)));
    const Scalar at = Scalar::index(floor_div(distance, slide.stride));
    if (const std::optional<Scalar> inside = loops::within(at, counts[i]))
      require(*inside);
    seen.at.push_back(at);
  }
  return seen;
}

}  // namespace tenon
