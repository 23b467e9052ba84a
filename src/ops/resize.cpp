#include "ops/resize.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/elements.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/interpolate.h"
#include "ops/linear.h"
#include "ops/lower_resize.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/words.h"

namespace tenon {
namespace {

constexpr int64_t kLargestSize = int64_t{1} << 48;

// --- where in x an element of the result lies ---

// One dimension.
struct Stretch {
  int64_t size = 0;           // of x
  int64_t count = 0;          // of the result
  double scale = 1;           // count / size, but for rounding
  double start = 0, end = 1;  // the part of x that is seen, for crop

  double exact_count() const { return scale * static_cast<double>(size); }
};

using Position = double (*)(const Stretch&, double index);

double half_pixel(const Stretch& s, double index) { return (index + 0.5) / s.scale - 0.5; }
double half_pixel_or_first(const Stretch& s, double index) {
  return s.exact_count() > 1 ? half_pixel(s, index) : 0;
}
// Around the centre, where the count was rounded.
double half_pixel_symmetric(const Stretch& s, double index) {
  const double rounded = static_cast<double>(s.count) / s.exact_count();
  return static_cast<double>(s.size) / 2 * (1 - rounded) + half_pixel(s, index);
}
double shifted(const Stretch& s, double index) { return (index + 0.5) / s.scale; }
double asymmetric(const Stretch& s, double index) { return index / s.scale; }
double align_corners(const Stretch& s, double index) {
  return s.exact_count() == 1 ? 0 : index * static_cast<double>(s.size - 1) / (s.exact_count() - 1);
}
double crop(const Stretch& s, double index) {
  const auto last = static_cast<double>(s.size - 1);
  return s.exact_count() == 1 ? (s.start + s.end) / 2 * last
                              : s.start * last + index * (s.end - s.start) * last / (s.exact_count() - 1);
}

constexpr std::pair<std::string_view, Position> kPositions[] = {
    {"half_pixel", half_pixel},
    {"half_pixel_or_first", half_pixel_or_first},
    {"half_pixel_symmetric", half_pixel_symmetric},
    {"shifted", shifted},
    {"asymmetric", asymmetric},
    {"align_corners", align_corners},
    {"crop", crop},
};

using Round = double (*)(double);

constexpr std::pair<std::string_view, Round> kRounds[] = {
    {"half_down", [](double x) { return std::ceil(x - 0.5); }},
    {"half_up", [](double x) { return std::floor(x + 0.5); }},
    {"down", [](double x) { return std::floor(x); }},
    {"up", [](double x) { return std::ceil(x); }},
};

// --- how many elements the result has ---

enum class Aspect : uint8_t { Stretch, NotLarger, NotSmaller };

Aspect aspect_of(const Node& n) {
  return named<Aspect>(
      n, "aspect",
      {{"stretch", Aspect::Stretch}, {"not_larger", Aspect::NotLarger}, {"not_smaller", Aspect::NotSmaller}});
}

// Counted from the front; in the order given, which is that of scales and sizes.
std::vector<int64_t> axes_of(const Node& n, int64_t rank) {
  std::vector<int64_t> axes = n.attr("axes").as<Attribute::Ints>();
  checked_axes("resize", axes, rank);
  for (int64_t& axis : axes)
    axis = checked_axis("resize", axis, rank);
  return axes;
}

void check_count(std::string_view what, size_t got, size_t wanted) {
  if (got != wanted)
    throw user_error("resize: {} has {} elements, but {} are wanted", what, got, wanted);
}

int64_t to_count(double value) {
  if (!(value >= 0 && value < static_cast<double>(kLargestSize)))
    throw user_error("resize: the result would have {:g} elements along a dimension", value);
  return static_cast<int64_t>(value);
}

// The count in f32, in which the scales are given: so 5 · 2.8 is 14.
int64_t scaled_count(int64_t size, float scale) {
  if (!(scale > 0))
    throw user_error("resize: scale {} is not above 0", scale);
  return to_count(std::floor(static_cast<float>(size) * scale));
}

std::vector<Stretch> stretches_for_scales(const Extents& sizes, const Tensor& scales) {
  check_count("scales", static_cast<size_t>(scales.count()), sizes.size());
  std::vector<Stretch> result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const float scale = scales.data<float>()[i];
    result.push_back({.size = sizes[i], .count = scaled_count(sizes[i], scale), .scale = scale});
  }
  return result;
}

std::vector<Stretch> stretches_for_sizes(const Extents& sizes, const std::vector<int64_t>& wanted,
                                         Aspect aspect) {
  check_count("sizes", wanted.size(), sizes.size());
  std::vector<Stretch> result;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (wanted[i] < 0 || wanted[i] > kLargestSize || (sizes[i] == 0 && wanted[i] > 0))
      throw user_error("resize: {} elements cannot become {}", sizes[i], wanted[i]);
    result.push_back(
        {.size = sizes[i],
         .count = wanted[i],
         .scale = sizes[i] == 0 ? 1 : static_cast<double>(wanted[i]) / static_cast<double>(sizes[i])});
  }
  if (aspect == Aspect::Stretch || result.empty())
    return result;
  // One scale for all.
  double scale = result.front().scale;
  for (const Stretch& each : result)
    scale = aspect == Aspect::NotLarger ? std::min(scale, each.scale) : std::max(scale, each.scale);
  for (Stretch& each : result) {
    each.scale = scale;
    each.count = to_count(std::floor(each.exact_count() + 0.5));
  }
  return result;
}

// size · scale rounded down, for a size that is not known: where the scale is a fraction with a small power
// of two below.
Dim scaled_dim(const Dim& size, float scale) {
  if (size.is_constant())
    return scaled_count(*size.constant(), scale);
  for (int64_t divisor = 1; divisor <= 1024; divisor *= 2) {
    const float numerator = scale * static_cast<float>(divisor);
    if (numerator > 0 && numerator < 1e6F && numerator == std::floor(numerator))
      return floor_div(size * static_cast<int64_t>(numerator), divisor);
  }
  return {};
}

Types infer(const Node& n) {
  const Value x = n.in("x"), scales = n.in("scales"), sizes = n.in("sizes");
  named<Position>(n, "positions", kPositions);
  named<Round>(n, "round", kRounds);
  filter_of(n);
  const Aspect aspect = aspect_of(n);
  const std::vector<int64_t> axes = axes_of(n, x.rank());
  if (bool(scales) == bool(sizes))
    throw operand_error(n, "either scales or sizes must be given");
  std::vector<Dim> dims = x.shape().dims();
  const auto set = [&](size_t i, const Dim& dim) { dims[static_cast<size_t>(axes[i])] = dim; };
  if (scales) {
    const Tensor* known = scales.known_tensor();
    if (known != nullptr)
      check_count("scales", static_cast<size_t>(known->count()), axes.size());
    for (size_t i = 0; i < axes.size(); ++i)
      set(i, known == nullptr ? Dim() : scaled_dim(x.dim(axes[i]), known->data<float>()[i]));
    return {Type::tensor(x.dtype(), dims)};
  }
  const auto known = sizes.known_dims();
  if (known) {
    check_count("sizes", known->size(), axes.size());
    check_sizes(n, "sizes", *known);
  }
  Extents seen, wanted;
  for (size_t i = 0; i < axes.size(); ++i) {
    set(i, known && aspect == Aspect::Stretch ? (*known)[i] : Dim());
    if (known && (*known)[i].is_constant() && x.dim(axes[i]).is_constant()) {
      seen.push_back(*x.dim(axes[i]).constant());
      wanted.push_back(*(*known)[i].constant());
    }
  }
  if (seen.size() == axes.size()) {
    const std::vector<Stretch> stretches = stretches_for_sizes(seen, wanted, aspect);
    for (size_t i = 0; i < axes.size(); ++i)
      set(i, stretches[i].count);
  }
  return {Type::tensor(x.dtype(), dims)};
}

// --- the elements ---

// What the result's elements along one dimension are made of. No taps: it lies outside of what crop may see.
std::vector<Taps> taps_along(const Call& c, const Stretch& stretch, Filter filter) {
  const Position position = named<Position>(c.node(), "positions", kPositions);
  const Round round = named<Round>(c.node(), "round", kRounds);
  const double a = c.attr("cubic_a");
  const double widening = c.attr("antialias") ? std::max(1.0, 1 / stretch.scale) : 1.0;
  std::vector<Taps> result;
  for (int64_t i = 0; i < stretch.count; ++i) {
    const double at = position(stretch, static_cast<double>(i));
    if (position == crop && !(at >= 0 && at <= static_cast<double>(stretch.size - 1))) {
      result.emplace_back();
      continue;
    }
    Taps taps = taps_at(filter == Filter::Nearest ? round(at) : at, filter, widening, a);
    if (c.attr("exclude_outside") && filter != Filter::Nearest) {
      double sum = 0;
      for (Tap& tap : taps) {
        tap.weight = tap.index < 0 || tap.index >= stretch.size ? 0 : tap.weight;
        sum += tap.weight;
      }
      for (Tap& tap : taps)
        tap.weight /= sum == 0 ? 1 : sum;
    }
    for (Tap& tap : taps)
      tap.index = std::clamp<int64_t>(tap.index, 0, stretch.size - 1);
    result.push_back(std::move(taps));
  }
  return result;
}

// The elements along one dimension of x, moved (T is how they are stored) or blended (T is double).
template <class T>
std::vector<T> resample(const std::vector<T>& x, int64_t outer, int64_t size, int64_t inner,
                        const std::vector<Taps>& along, bool blend, const T& outside) {
  std::vector<T> result;
  result.reserve(static_cast<size_t>(outer) * along.size() * static_cast<size_t>(inner));
  for (int64_t i = 0; i < outer; ++i)
    for (const Taps& taps : along) {
      const auto row = [&](const Tap& tap) { return x.begin() + (i * size + tap.index) * inner; };
      if (taps.empty() || !blend) {
        if (taps.empty())
          result.insert(result.end(), static_cast<size_t>(inner), outside);
        else
          result.insert(result.end(), row(taps.front()), row(taps.front()) + inner);
        continue;
      }
      if constexpr (std::is_same_v<T, double>) {
        result.resize(result.size() + static_cast<size_t>(inner), 0.0);
        const auto to = result.end() - inner;
        for (const Tap& tap : taps)
          for (int64_t j = 0; j < inner; ++j)
            to[j] += tap.weight * row(tap)[j];
      }
    }
  return result;
}

// Dimension by dimension: the weights of a neighbour are products of those along each.
template <class T>
std::vector<T> resample_all(const Call& c, std::vector<T> values, Extents extents,
                            const std::vector<int64_t>& axes, const std::vector<Stretch>& stretches,
                            Filter filter, const T& outside) {
  const bool crops = named<Position>(c.node(), "positions", kPositions) == crop;
  // What shrinks comes first, so that no intermediate result is larger than both x and the last one.
  std::vector<size_t> order(axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t i, size_t j) { return stretches[i].scale < stretches[j].scale; });
  for (size_t i : order) {
    if (stretches[i].scale == 1 && stretches[i].count == stretches[i].size && !crops)
      continue;
    int64_t outer = 1, inner = 1;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (axis != static_cast<size_t>(axes[i]))
        (axis < static_cast<size_t>(axes[i]) ? outer : inner) *= extents[axis];
    values = resample<T>(values, outer, stretches[i].size, inner, taps_along(c, stretches[i], filter),
                         filter != Filter::Nearest, outside);
    extents[static_cast<size_t>(axes[i])] = stretches[i].count;
  }
  return values;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const Filter filter = filter_of(c.node());
  const std::vector<int64_t> axes = axes_of(c.node(), x.rank());
  Extents sizes, extents = x.extents();
  for (int64_t axis : axes)
    sizes.push_back(x.extent(axis));
  std::vector<Stretch> stretches =
      c.has("scales") ? stretches_for_scales(sizes, c.in("scales"))
                      : stretches_for_sizes(sizes, as_ints(c.in("sizes")), aspect_of(c.node()));
  if (named<Position>(c.node(), "positions", kPositions) == crop) {
    const std::vector<double> region =
        c.has("region") ? widen<double>(c.in("region")) : std::vector<double>();
    check_count("region", region.size(), 2 * axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      stretches[i].start = region[i];
      stretches[i].end = region[axes.size() + i];
    }
  }
  for (size_t i = 0; i < axes.size(); ++i)
    extents[static_cast<size_t>(axes[i])] = stretches[i].count;
  Tensor result(x.dtype(), extents);
  if (result.count() == 0)
    return {result};
  const double outside = c.attr("outside_value");
  if (filter != Filter::Nearest) {
    std::vector<double> values =
        resample_all<double>(c, widen<double>(x), x.extents(), axes, stretches, filter, outside);
    if (!is_float(x.dtype()))
      for (double& value : values)
        value = std::nearbyint(value);
    return {narrow<double>(x.dtype(), extents, values,
                           is_float(x.dtype()) ? Overflow::Natural : Overflow::Saturate)};
  }
  return with_storage(x.dtype(), [&]<class T>(T) -> Data {
    const std::span<const T> from = stored<T>(x);
    const T fill =
        NumbersAndBool.contains(x.dtype()) ? stored<T>(filled(x.dtype(), {}, outside)).front() : T{};
    std::vector<T> values = resample_all<T>(c, std::vector<T>(from.begin(), from.end()), x.extents(), axes,
                                            stretches, filter, fill);
    std::move(values.begin(), values.end(), mutable_stored<T>(result).begin());
    return {result};
  });
}

// --- gradient ---

// The matrix that one dimension is multiplied with: what becomes of unit vectors of its size.
Value matrix_along(const GradContext& n, int64_t index, int64_t axis) {
  const Value x = n.in("x"), size = size_along(x, axis);
  const auto only = [&](Value list, int64_t at) { return list ? slice(list, 0, at, at + 1) : Value(); };
  const Value region = n.in("region");
  const auto count = static_cast<int64_t>(n.attr("axes").as<Attribute::Ints>().size());
  Attributes attributes = n.node().attributes();
  attributes.insert_or_assign("axes", Attribute::Ints{1});
  attributes.insert_or_assign("outside_value", 0.0);
  return n.graph()
      .create("resize",
              {{"x", eye(concat({size, size}, 0), x.dtype())},
               {"scales", only(n.in("scales"), index)},
               {"sizes", only(n.in("sizes"), index)},
               {"region", region ? concat({only(region, index), only(region, index + count)}, 0) : Value()}},
              attributes)
      ->result();
}

// Each dimension is resized on its own, by a product with a matrix.
std::vector<Operand> grad(const GradContext& n) {
  if (aspect_of(n.node()) != Aspect::Stretch)
    throw n.decline("where the aspect is kept, the scale of one dimension depends on the others");
  const std::vector<int64_t> axes = axes_of(n.node(), n.in("x").rank());
  Value gradient = n.dy();
  for (size_t i = 0; i < axes.size(); ++i) {
    std::vector<int64_t> permutation(static_cast<size_t>(gradient.rank()));
    std::iota(permutation.begin(), permutation.end(), 0);
    std::swap(permutation[static_cast<size_t>(axes[i])], permutation.back());
    const Value matrix = matrix_along(n, static_cast<int64_t>(i), axes[i]);
    gradient = transpose(matmul(transpose(gradient, permutation), matrix, {.b = true}), permutation);
  }
  return {{"x", gradient}};
}

}  // namespace

const Family& resize_ops() {
  static const Family ops = {
      {.name = "resize",
       .doc = "x with `sizes` elements along axes, or `scales` times as many, interpolated",
       .operands = {{"x", "T"},
                    {"scales", "f32", Arity::Optional},
                    {"sizes", "i64", Arity::Optional},
                    {"region", "R", Arity::Optional}},
       .attributes =
           {{"axes", AttributeKind::Ints, "the dimensions that scales, sizes and region speak of"},
            {"mode", AttributeKind::String, "nearest, linear or cubic", "nearest"},
            {"positions", AttributeKind::String,
             "where in x an element of the result lies: half_pixel (the pixels' centres correspond), "
             "half_pixel_or_first, half_pixel_symmetric, shifted, asymmetric, align_corners, crop",
             "half_pixel"},
            {"round", AttributeKind::String,
             "for nearest: half_down, half_up, down or up from a position between elements", "half_down"},
            {"cubic_a", AttributeKind::Float, "the parameter of the cubic filter", -0.75},
            {"antialias", AttributeKind::Bool, "whether the filter widens where the result is smaller",
             false},
            {"exclude_outside", AttributeKind::Bool,
             "whether neighbours outside x weigh nothing; else they repeat its border", false},
            {"outside_value", AttributeKind::Float, "for crop: what lies outside x", 0.0},
            {"aspect", AttributeKind::String,
             "for sizes: stretch, or one scale for all axes, not_larger or not_smaller than sizes",
             "stretch"}},
       .results = {{"y", "T"}},
       .types = {{"T", AnyDType}, {"R", Floats}},
       .infer = infer,
       .eval = eval,
       .lower = lower_resize,
       .grad = grad},
  };
  return ops;
}

}  // namespace tenon
