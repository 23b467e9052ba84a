#include "ops/region.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gather.h"
#include "ops/gradient.h"
#include "ops/interpolate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/sample_nodes.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "ops/words.h"

namespace tenon {
namespace {

// What both ops ask of x, regions and the size of the result.
void check(const Node& n, const Shape& x, const Shape& regions, int64_t numbers) {
  if (x.rank() != 4)
    throw operand_error(n, "x must be [batch, channels, height, width]");
  if (regions.rank() != 2 || provably_different(regions[1], numbers))
    throw operand_error(n, fmt::format("regions must be [count, {}]", numbers));
  const std::vector<int64_t>& size = n.attr("size");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    throw user_error("{}: size is [{}], but must be a height and a width of at least 1", n.op().name,
                     fmt::join(size, ","));
}

Type result_type(const Node& n) {
  const std::vector<int64_t>& size = n.attr("size");
  return Type::tensor(n.in("x").dtype(), {n.in("regions").dim(0), n.in("x").dim(1), size[0], size[1]});
}

int64_t checked_image(const Call& c, int64_t image) {
  if (image < 0 || image >= c.in("x").extent(0))
    throw user_error("{}: there is no image {} in a batch of {}", c.node().op().name, image,
                     c.in("x").extent(0));
  return image;
}

// --- what both decompositions share ---

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A number of each region times the scale, in f64: the last bit of one may decide where a bin ends.
// [count, 1, …], of the given rank.
Value scaled_corner(const Node& n, int64_t column, int64_t rank) {
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[0] = -1;
  const Value corner = slice(n.in("regions"), 1, column, column + 1);
  return reshape(in_dtype(corner, DType::F64), shape) * n.attr("scale").as<double>();
}

Value numbers_along(const Node& n, int64_t count, int64_t axis, int64_t rank) {
  return count_along_axis(int_vector(n.graph(), {count}), axis, rank, DType::F64);
}

// A negative number counts from no end: it becomes one that no batch has.
Value known_images(const Node& n, Value images) {
  return where(less(images, scalar(n.graph(), DType::I64, 0)), length_along(n.in("x"), 0, DType::I64),
               images);
}

// --- roi_align ---

namespace roi_align_op {

bool takes_greatest(const Node& n) { return named<bool>(n, "mode", {{"mean", false}, {"max", true}}); }

Types infer(const Node& n) {
  takes_greatest(n);
  check(n, n.in("x").shape(), n.in("regions").shape(), 4);
  if (n.in("images").rank() != 1)
    throw operand_error(n, "images must be a vector");
  return {result_type(n)};
}

// The samples along one dimension of a region: for each bin its positions, as neighbours in the image. A
// position more than one element outside has none.
std::vector<std::vector<Taps>> samples_along(double start, double end, int64_t bins, int64_t samples,
                                             int64_t size, bool half_pixel) {
  const double length = half_pixel ? end - start : std::max(end - start, 1.0);
  const double bin_length = length / static_cast<double>(bins);
  constexpr double most = 1 << 22;
  const double wanted = samples > 0 ? static_cast<double>(samples) : std::ceil(bin_length);
  if (!(wanted * static_cast<double>(bins) <= most))
    throw user_error("roi_align: a region from {} to {} would take {} samples a bin", start, end, wanted);
  std::vector<std::vector<Taps>> result(static_cast<size_t>(bins));
  for (int64_t bin = 0; bin < bins; ++bin)
    for (double i = 0; i < wanted; ++i) {
      const double at = start + static_cast<double>(bin) * bin_length + (i + 0.5) * bin_length / wanted;
      Taps taps;
      if (at >= -1 && at <= static_cast<double>(size) && size > 0)
        taps = taps_inside(std::clamp(at, 0.0, static_cast<double>(size - 1)), size);
      result[static_cast<size_t>(bin)].push_back(std::move(taps));
    }
  return result;
}

// One bin: the mean over its samples, or the greatest weighted neighbour of any of them.
double pool(const double* plane, int64_t width, const std::vector<Taps>& rows,
            const std::vector<Taps>& columns, bool greatest) {
  double sum = 0, most = -std::numeric_limits<double>::infinity();
  for (const Taps& row : rows)
    for (const Taps& column : columns) {
      if (row.empty() || column.empty())
        most = std::max(most, 0.0);
      for (const Tap& y : row)
        for (const Tap& x : column) {
          const double value = y.weight * x.weight * plane[y.index * width + x.index];
          sum += value;
          if (value > most || std::isnan(value))
            most = value;
        }
    }
  const size_t count = rows.size() * columns.size();
  if (greatest)
    return count == 0 ? 0 : most;
  return sum / static_cast<double>(std::max<size_t>(count, 1));
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &regions = c.in("regions");
  check(c.node(), Shape::of(x.extents()), Shape::of(regions.extents()), 4);
  const std::vector<int64_t> images = as_ints(c.in("images")), size = c.attr("size").as<Attribute::Ints>();
  if (static_cast<int64_t>(images.size()) != regions.extent(0))
    throw user_error("roi_align: there are {} regions, but {} images", regions.extent(0), images.size());
  const bool greatest = takes_greatest(c.node());
  const bool half_pixel = c.attr("half_pixel");
  const int64_t samples = c.attr("samples"), channels = x.extent(1), height = x.extent(2),
                width = x.extent(3);
  const double scale = c.attr("scale"), shift = half_pixel ? 0.5 : 0;
  const Extents extents = {regions.extent(0), channels, size[0], size[1]};
  const std::vector<double> values = widen<double>(x), corners = widen<double>(regions);
  std::vector<double> result = zeros<double>(extents);
  auto to = result.begin();
  for (size_t i = 0; i < images.size(); ++i) {
    const int64_t image = checked_image(c, images[i]);
    const auto corner = [&](size_t k) { return corners[4 * i + k] * scale - shift; };
    const auto columns = samples_along(corner(0), corner(2), size[1], samples, width, half_pixel);
    const auto rows = samples_along(corner(1), corner(3), size[0], samples, height, half_pixel);
    for (int64_t channel = 0; channel < channels; ++channel)
      for (const auto& row : rows)
        for (const auto& column : columns)
          *to++ = pool(values.data() + (image * channels + channel) * height * width, width, row, column,
                       greatest);
  }
  return {narrow<double>(x.dtype(), extents, result)};
}

// Where the samples of all bins are along one dimension: [count, rows, columns, samples by row, samples by
// column], with size 1 for what makes no difference there.
Value find_positions(const Node& n, int64_t spatial_axis) {
  constexpr int64_t rank = 5;
  const bool half_pixel = n.attr("half_pixel");
  const int64_t bins = n.attr("size").as<Attribute::Ints>()[static_cast<size_t>(spatial_axis)],
                samples = n.attr("samples"), column = 1 - spatial_axis;
  const auto corner = [&](int64_t k) { return scaled_corner(n, k, rank) - (half_pixel ? 0.5 : 0); };
  const Value start = corner(column), length = corner(column + 2) - start;
  const Value bin_length =
      (half_pixel ? length : maximum(length, scalar(n.graph(), DType::F64, 1))) / static_cast<double>(bins);
  return start + numbers_along(n, bins, 1 + spatial_axis, rank) * bin_length +
         (numbers_along(n, samples, 3 + spatial_axis, rank) + 0.5) * bin_length /
             static_cast<double>(samples);
}

// The neighbours of all samples of a bin along one dimension, those of one sample beside those of another:
// as many as samples times neighbours, in the place of the samples.
struct SampleNodes {
  Value is_near;  // whether the sample is no more than one element outside
  TapNodes taps;
};

SampleNodes find_samples(const Node& n, int64_t spatial_axis) {
  const Value x = n.in("x"), at = find_positions(n, spatial_axis);
  const auto number = [&](double value) { return scalar(n.graph(), DType::F64, value); };
  const Value size = length_along(x, 2 + spatial_axis, DType::F64);
  const Value is_near = is_between(at, number(-1), size);
  const std::vector<TapNodes> taps =
      taps_among(clip(at, number(0), size - 1.0), is_near, Filter::Linear, x, 2 + spatial_axis);
  const auto all = [&](auto part) {
    std::vector<Value> parts;
    for (const TapNodes& tap : taps)
      parts.push_back(part(tap));
    return concat(parts, 3 + spatial_axis);
  };
  return {.is_near = all([&](const TapNodes&) { return is_near; }),
          .taps = {.index = all([](const TapNodes& tap) { return tap.index; }),
                   .weight = all([](const TapNodes& tap) { return tap.weight; }),
                   .inside = all([](const TapNodes& tap) { return tap.inside; })}};
}

// pool as nodes, over all samples at once: [count, rows, columns, channels].
Value greatest_of(const NeighbourNodes& all, Value is_near) {
  const DType dtype = working_dtype(all.element.dtype());
  const Value value = in_dtype(all.weight, dtype) * in_dtype(all.element, dtype);
  const Value counted = where(all.inside, value, scalar(value.graph(), dtype, -kInfinity));
  return reduce_max(keep_where(unsqueeze(is_near, {5}), counted), {3, 4});
}

// One sum over all neighbours of all samples: a row of channels is read where it is added, so that nothing
// is written down but the sum.
Value mean_of(const Node& n, const NeighbourNodes& all) {
  const auto samples = static_cast<double>(n.attr("samples").as<int64_t>());
  return reduce_sum(blend({all}), {3, 4}) * (1 / (samples * samples));
}

std::vector<Value> decompose(const Node& n) {
  check_ranks_known(n);
  if (n.attr("samples").as<int64_t>() < 1)
    throw unsupported("roi_align: with samples=0, the number of samples in a bin is dynamic");
  const SampleNodes rows = find_samples(n, 0), columns = find_samples(n, 1);
  const Value image = reshape(known_images(n, n.in("images")), {-1, 1, 1, 1, 1});
  const NeighbourNodes all = neighbours_in(n.in("x"), image, {{rows.taps}, {columns.taps}}).front();
  const Value pooled =
      takes_greatest(n) ? greatest_of(all, logical_and(rows.is_near, columns.is_near)) : mean_of(n, all);
  return {in_dtype(with_channels_at(pooled, 1), n.in("x").dtype())};
}

}  // namespace roi_align_op

// --- max_roi_pool ---

namespace max_roi_pool_op {

Types infer(const Node& n) {
  check(n, n.in("x").shape(), n.in("regions").shape(), 5);
  return {result_type(n)};
}

// The elements [first, last) of each bin along one dimension.
std::vector<std::pair<int64_t, int64_t>> bins_along(double start, double end, int64_t bins, int64_t size) {
  const double length = std::max(end - start + 1, 1.0) / static_cast<double>(bins);
  const auto place = [&](double at) {  // NaN is no place: the bin is empty
    return at > 0 ? static_cast<int64_t>(std::min(at, static_cast<double>(size))) : 0;
  };
  std::vector<std::pair<int64_t, int64_t>> result;
  for (int64_t bin = 0; bin < bins; ++bin)
    result.emplace_back(place(std::floor(static_cast<double>(bin) * length) + start),
                        place(std::ceil(static_cast<double>(bin + 1) * length) + start));
  return result;
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &regions = c.in("regions");
  check(c.node(), Shape::of(x.extents()), Shape::of(regions.extents()), 5);
  const std::vector<int64_t> size = c.attr("size").as<Attribute::Ints>();
  const double scale = c.attr("scale");
  const int64_t channels = x.extent(1), height = x.extent(2), width = x.extent(3);
  const Extents extents = {regions.extent(0), channels, size[0], size[1]};
  const std::vector<double> values = widen<double>(x), corners = widen<double>(regions);
  const std::vector<int64_t> whole = widen<int64_t>(regions);  // of which the images' numbers are read
  std::vector<double> result = zeros<double>(extents);
  if (result.empty())
    return {Tensor(x.dtype(), extents)};
  auto to = result.begin();
  for (size_t i = 0; i < static_cast<size_t>(extents[0]); ++i) {
    const int64_t image = checked_image(c, whole[5 * i]);
    const auto corner = [&](size_t k) { return std::round(corners[5 * i + k] * scale); };
    const auto columns = bins_along(corner(1), corner(3), size[1], width);
    const auto rows = bins_along(corner(2), corner(4), size[0], height);
    for (int64_t channel = 0; channel < channels; ++channel) {
      const double* plane = values.data() + (image * channels + channel) * height * width;
      for (const auto& [top, bottom] : rows)
        for (const auto& [left, right] : columns) {
          double& most = *to++;
          for (int64_t y = top; y < bottom; ++y)
            for (int64_t column = left; column < right; ++column)
              if (const double value = plane[y * width + column];
                  (y == top && column == left) || value > most || std::isnan(value))
                most = value;
        }
    }
  }
  return {narrow<double>(x.dtype(), extents, result)};
}

// Halves away from zero.
Value rounded(Value x) {
  const Value size = abs(x), below = floor(size);
  const Value up = greater_equal(size - below, scalar(x.graph(), x.dtype(), 0.5));
  return sign(x) * (below + cast(up, x.dtype()));
}

// Which elements along one dimension of x each bin has: [count, bins, elements].
Value find_members(const Node& n, int64_t spatial_axis) {
  const int64_t bins = n.attr("size").as<Attribute::Ints>()[static_cast<size_t>(spatial_axis)],
                column = 2 - spatial_axis;
  const Value start = rounded(scaled_corner(n, column, 3)), end = rounded(scaled_corner(n, column + 2, 3));
  const Value one = scalar(n.graph(), DType::F64, 1), bin = numbers_along(n, bins, 1, 3);
  const Value length = maximum(end - start + 1.0, one) / static_cast<double>(bins);
  const Value element = count_along_axis(size_along(n.in("x"), 2 + spatial_axis), 2, 3, DType::F64);
  return logical_and(greater_equal(element, floor(bin * length) + start),
                     less(element, ceil((bin + 1.0) * length) + start));
}

// Whether a bin has any: [count, bins].
Value has_any(Value members) {
  const Value most = reduce_max(cast(members, DType::F32), {2});
  return greater(most, scalar(most.graph(), DType::F32, 0));
}

// First the greatest along the columns of the image, then of these along the rows.
std::vector<Value> decompose(const Node& n) {
  check_ranks_known(n);
  const Value x = in_dtype(n.in("x"), working_dtype(n.in("x").dtype()));
  const Value images = reshape(cast(slice(n.in("regions"), 1, 0, 1), DType::I64), {-1});
  const Value planes = gather(x, known_images(n, images), 0);
  const Value rows = find_members(n, 0), columns = find_members(n, 1);
  const auto greatest = [&](Value members, Value elements, int64_t axis) {
    return reduce_max(where(members, elements, scalar(n.graph(), x.dtype(), -kInfinity)), {axis});
  };
  const Value by_row = greatest(unsqueeze(rows, {1, 4}), unsqueeze(planes, {2}), 3);
  const Value most = greatest(unsqueeze(columns, {1, 2}), unsqueeze(by_row, {3}), 4);
  const Value any = logical_and(unsqueeze(has_any(rows), {1, 3}), unsqueeze(has_any(columns), {1, 2}));
  return {in_dtype(keep_where(any, most), n.in("x").dtype())};
}

}  // namespace max_roi_pool_op

}  // namespace

const Family& region_ops() {
  static const AttributeDecl size = {"size", AttributeKind::Ints, "the height and width of the result"};
  static const AttributeDecl scale = {"scale", AttributeKind::Float,
                                      "how many elements of x one unit of regions is", 1.0};
  static const Family ops = {
      {.name = "roi_align",
       .doc = "regions [left, top, right, bottom] of x: [batch, channels, height, width], sampled and pooled",
       .operands = {{"x", "T"}, {"regions", "T"}, {"images", "i64"}},
       .attributes = {size,
                      scale,
                      {"samples", AttributeKind::Int,
                       "how many in a bin along each dimension; 0: as many as elements", 0},
                      {"mode", AttributeKind::String, "mean, or max: the greatest weighted neighbour",
                       "mean"},
                      {"half_pixel", AttributeKind::Bool,
                       "whether coordinates are those of borders, not of centres", true}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = roi_align_op::infer,
       .eval = roi_align_op::eval,
       .decompose = roi_align_op::decompose},
      {.name = "max_roi_pool",
       .doc = "the greatest element in each bin of regions [image, left, top, right, bottom] of x; 0 where "
              "there is none",
       .operands = {{"x", "T"}, {"regions", "T"}},
       .attributes = {size, scale},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = max_roi_pool_op::infer,
       .eval = max_roi_pool_op::eval,
       .decompose = max_roi_pool_op::decompose},
  };
  return ops;
}

}  // namespace tenon
