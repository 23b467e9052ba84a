#include "ops/interpolate.h"

#include <cmath>
#include <span>

#include "ops/shapes.h"
#include "ops/words.h"

namespace tenon {
namespace {

double weight_at(double distance, Filter filter, double a) {
  const double d = std::abs(distance);
  if (filter == Filter::Linear)
    return d < 1 ? 1 - d : 0;
  if (d <= 1)
    return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

double sample_from(const double* elements, std::span<const int64_t> sizes, std::span<const Taps> taps) {
  int64_t stride = 1;
  for (int64_t size : sizes.subspan(1))
    stride *= size;
  double sum = 0;
  for (const auto& [index, weight] : taps.front())
    sum += weight * (sizes.size() == 1
                         ? elements[index]
                         : sample_from(elements + index * stride, sizes.subspan(1), taps.subspan(1)));
  return sum;
}

}  // namespace

Filter filter_of(const Node& n) {
  const auto filter = named<Filter>(
      n, "mode", {{"nearest", Filter::Nearest}, {"linear", Filter::Linear}, {"cubic", Filter::Cubic}});
  if (filter != Filter::Nearest && !Numbers.contains(n.in("x").dtype()))
    throw operand_error(n, "only numbers can be interpolated; other elements need mode nearest");
  return filter;
}

Taps taps_at(double position, Filter filter, double stretch, double a) {
  if (filter == Filter::Nearest)
    return {{static_cast<int64_t>(std::nearbyint(position)), 1.0}};
  const double reach = (filter == Filter::Linear ? 1 : 2) * stretch;
  const auto base = static_cast<int64_t>(std::floor(position));
  const double ratio = position - static_cast<double>(base);
  const auto first = static_cast<int64_t>(std::floor(-reach)) + 1;
  Taps taps;
  double sum = 0;
  for (int64_t i = first; i <= 1 - first; ++i) {
    taps.push_back({base + i, weight_at((static_cast<double>(i) - ratio) / stretch, filter, a)});
    sum += taps.back().weight;
  }
  for (Tap& tap : taps)
    tap.weight /= sum;
  return taps;
}

Taps taps_inside(double position, int64_t size) {
  if (!(position > -1 && position < static_cast<double>(size)))
    return {};
  Taps taps = taps_at(position, Filter::Linear);
  std::erase_if(taps, [&](const Tap& tap) { return tap.index < 0 || tap.index >= size; });
  return taps;
}

double sample(const double* elements, const Extents& sizes, const std::vector<Taps>& taps) {
  return sample_from(elements, sizes, taps);
}

}  // namespace tenon
