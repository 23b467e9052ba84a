#include "ops/image.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/size_condition.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/convolve_gradient.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/interpolate.h"
#include "ops/linear.h"
#include "ops/lower_window.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/sample_nodes.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "ops/window.h"
#include "ops/words.h"

namespace tenon {
namespace {

// --- grid_sample ---

namespace grid_sample_op {

enum class Outside : uint8_t { Zeros, Border, Reflection };

Outside outside_of(const Node& n) {
  return named<Outside>(
      n, "outside",
      {{"zeros", Outside::Zeros}, {"border", Outside::Border}, {"reflection", Outside::Reflection}});
}

void check(const Node& n, const Shape& x, const Shape& grid) {
  if (x.rank() < 3)
    throw operand_error(n, "x has no spatial dimension; it must be [batch, channels, spatial…]");
  if (grid.rank() != x.rank() || provably_different(grid[-1], x.rank() - 2))
    throw operand_error(n, fmt::format("grid must be [batch, {} sizes, {}]: a position for each element",
                                       x.rank() - 2, x.rank() - 2));
  if (provably_different(x[0], grid[0]))
    throw operand_error(n, "x and grid must have the same batch");
}

Types infer(const Node& n) {
  const Value x = n.in("x"), grid = n.in("grid");
  outside_of(n);
  filter_of(n);
  check(n, x.shape(), grid.shape());
  std::vector<Dim> dims = {x.dim(0), x.dim(1)};
  for (int64_t i = 1; i + 1 < grid.rank(); ++i)
    dims.push_back(grid.dim(i));
  return {Type::tensor(x.dtype(), dims)};
}

// Back and forth between two borders.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0 || !std::isfinite(x))
    return low;
  const double beyond = std::fmod(std::abs(x - low), 2 * range);
  return beyond <= range ? low + beyond : high - (beyond - range);
}

// The elements along one dimension that a position from -1 to 1 is interpolated from.
Taps find_taps(double normal, int64_t size, Filter filter, Outside outside, bool align_corners) {
  const auto length = static_cast<double>(size);
  const double low = align_corners ? 0 : -0.5, high = align_corners ? length - 1 : length - 0.5;
  double x = align_corners ? (normal + 1) / 2 * (length - 1) : ((normal + 1) * length - 1) / 2;
  if (filter == Filter::Nearest)
    x = std::nearbyint(x);
  if (!(x >= low && x <= high)) {
    if (outside == Outside::Border)
      x = x > high ? length - 1 : 0;
    else if (outside == Outside::Reflection)
      x = reflect(x, low, high);
    else  // beyond the reach of any filter it is all the same, and NaN is nowhere
      x = std::isnan(x) ? -4 : std::clamp(x, -4.0, length + 4);
  }
  Taps taps = taps_at(x, filter);
  for (Tap& tap : taps) {
    if (outside == Outside::Reflection)
      tap.index = static_cast<int64_t>(reflect(static_cast<double>(tap.index), low, high));
    if (outside != Outside::Zeros)
      tap.index = std::clamp<int64_t>(tap.index, 0, size - 1);
  }
  std::erase_if(taps, [&](const Tap& tap) { return tap.index < 0 || tap.index >= size; });
  return taps;
}

// What is sampled, and where.
struct Samples {
  explicit Samples(const Call& c)
      : sizes(c.in("x").extents().begin() + 2, c.in("x").extents().end()),
        extents({c.in("x").extent(0), c.in("x").extent(1)}),
        filter(filter_of(c.node())),
        outside(outside_of(c.node())),
        align_corners(c.attr("align_corners")),
        positions(widen<double>(c.in("grid"))) {
    const Extents& grid = c.in("grid").extents();
    extents.insert(extents.end(), grid.begin() + 1, grid.end() - 1);
  }

  // Calls f(channel's offset in x, its offset in the result, taps) for every sample; there must be some.
  template <class F>
  void for_each(F&& f) const {
    const int64_t batch = extents[0], channels = extents[1], x_plane = element_count(sizes),
                  y_plane = element_count(extents) / (batch * channels);
    const double* position = positions.data();
    for (int64_t image = 0; image < batch; ++image)
      for (int64_t at = 0; at < y_plane; ++at, position += sizes.size()) {
        std::vector<Taps> taps;
        for (size_t i = 0; i < sizes.size(); ++i)  // the innermost dimension stands first in grid
          taps.push_back(find_taps(position[sizes.size() - 1 - i], sizes[i], filter, outside, align_corners));
        for (int64_t channel = image * channels; channel < (image + 1) * channels; ++channel)
          f(channel * x_plane, static_cast<size_t>(channel * y_plane + at), taps);
      }
  }

  Extents sizes, extents;  // of a plane of x, and of the result
  Filter filter;
  Outside outside;
  bool align_corners;
  std::vector<double> positions;
};

Tensor blend(const Tensor& x, const Samples& samples) {
  const std::vector<double> from = widen<double>(x);
  std::vector<double> values = zeros<double>(samples.extents);
  samples.for_each([&](int64_t plane, size_t to, const std::vector<Taps>& taps) {
    values[to] = sample(from.data() + plane, samples.sizes, taps);
  });
  return narrow<double>(x.dtype(), samples.extents, values);
}

Tensor take_nearest(const Tensor& x, const Samples& samples) {
  Tensor result(x.dtype(), samples.extents);
  const Extents strides = row_major_strides(samples.sizes);
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    const std::span<T> to = mutable_stored<T>(result);
    samples.for_each([&](int64_t plane, size_t at, const std::vector<Taps>& taps) {
      int64_t index = plane;
      for (size_t i = 0; i < taps.size(); ++i) {
        if (taps[i].empty())
          return;  // it stays zero
        index += taps[i].front().index * strides[i];
      }
      to[at] = from[static_cast<size_t>(index)];
    });
  });
  return result;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  check(c.node(), Shape::of(x.extents()), Shape::of(c.in("grid").extents()));
  const Samples samples(c);
  if (element_count(samples.extents) == 0)
    return {Tensor(x.dtype(), samples.extents)};
  if (x.count() == 0 && samples.outside != Outside::Zeros)
    throw user_error("grid_sample: x has no elements to sample");
  return {samples.filter == Filter::Nearest ? take_nearest(x, samples) : blend(x, samples)};
}

// reflect as nodes.
Value reflected(Value x, Value low, Value high) {
  const auto number = [&](double value) { return scalar(x.graph(), x.dtype(), value); };
  const Value is_finite = less(abs(x), number(std::numeric_limits<double>::infinity()));
  const Value range = high - low, place = where(is_finite, x, low);
  const Value beyond =
      x.graph()
          .create("mod", {{"a", abs(place - low)}, {"b", 2.0 * range}}, {{"sign_of_dividend", true}})
          ->result();
  const Value between = where(less_equal(beyond, range), low + beyond, high - (beyond - range));
  return where(greater(range, number(0)), between, low);
}

// find_taps as nodes, for a spatial dimension of x.
std::vector<TapNodes> find_tap_nodes(const Node& n, Value normal, int64_t axis) {
  const Value x = n.in("x"), length = length_along(x, axis, normal.dtype());
  const Filter filter = filter_of(n);
  const Outside outside = outside_of(n);
  const bool align_corners = n.attr("align_corners");
  const auto number = [&](double value) { return scalar(n.graph(), normal.dtype(), value); };
  const Value low = number(align_corners ? 0 : -0.5), high = length - (align_corners ? 1 : 0.5);
  Value at = align_corners ? (normal + 1.0) / 2.0 * (length - 1.0) : ((normal + 1.0) * length - 1.0) / 2.0;
  if (filter == Filter::Nearest)
    at = round(at);
  if (outside == Outside::Zeros)
    return taps_among(at, is_between(at, number(-4), length + 4.0), filter, x, axis);
  const Value instead = outside == Outside::Border ? where(greater(at, high), length - 1.0, number(0))
                                                   : reflected(at, low, high);
  std::vector<TapNodes> taps = taps_near(where(is_between(at, low, high), at, instead), filter);
  for (TapNodes& tap : taps)
    if (outside == Outside::Reflection)
      tap.index = reflected(tap.index, low, high);
  return taps;
}

std::vector<Value> decompose(const Node& n) {
  check_ranks_known(n);
  const Value x = n.in("x"), grid = n.in("grid");
  const bool nearest = filter_of(n) == Filter::Nearest;
  if (!nearest && !is_float(x.dtype()))
    throw unsupported("grid_sample: between integers, the last bit of a weight may make a difference of 1");
  // Where a position is rounded, the last bit of a narrower float may make it another element.
  const Value positions = in_dtype(grid, nearest ? DType::F64 : working_dtype(grid.dtype()));
  std::vector<std::vector<TapNodes>> taps;
  for (int64_t axis = 2; axis < x.rank(); ++axis) {  // the innermost dimension stands first in grid
    const int64_t place = x.rank() - 1 - axis;
    taps.push_back(find_tap_nodes(n, squeeze(slice(positions, -1, place, place + 1), {-1}), axis));
  }
  const Value image = count_along_axis(size_along(grid, 0), 0, grid.rank() - 1, DType::I64);
  const Value seen = tenon::blend(neighbours_in(x, image, taps));
  return {in_dtype(with_channels_at(seen, 1), x.dtype())};
}

}  // namespace grid_sample_op

// --- affine_grid ---

namespace affine_grid_op {

void check(const Node& n, const Shape& theta) {
  const Dim rank = theta.rank() == 3 ? theta[1] : Dim(0);
  if (theta.rank() != 3 || provably_different(theta[2], rank + 1))
    throw operand_error(n, "theta must be [batch, 2, 3] or [batch, 3, 4]");
}

Types infer(const Node& n) {
  const Value theta = n.in("theta");
  check(n, theta.shape());
  const auto length = known_length(n, "size");
  const auto rank = length ? std::optional(*length - 2) : theta.dim(1).constant();
  if (!rank)
    return {Type::tensor(theta.dtype(), Shape::unranked())};
  if (*rank < 1 || *rank > kMostAxes || provably_different(theta.dim(1), *rank))
    throw operand_error(n, "size must be [batch, channels, spatial…], with a spatial size per row of theta");
  const std::vector<Dim> size = vector_dims(n, "size", static_cast<size_t>(*rank + 2));
  check_sizes(n, "size", size);
  std::vector<Dim> dims = {theta.dim(0)};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  dims.emplace_back(*rank);
  return {Type::tensor(theta.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& theta = c.in("theta");
  check(c.node(), Shape::of(theta.extents()));
  const std::vector<int64_t> size = as_ints(c.in("size"));
  const int64_t batch = theta.extent(0), rank = theta.extent(1);
  if (static_cast<int64_t>(size.size()) != rank + 2 || size[0] != batch)
    throw user_error("affine_grid: size is [{}], but theta is [{}]", fmt::join(size, ","),
                     fmt::join(theta.extents(), ","));
  const bool align_corners = c.attr("align_corners");
  const Extents sizes(size.begin() + 2, size.end());
  Extents extents = {batch};
  extents.insert(extents.end(), sizes.begin(), sizes.end());
  extents.push_back(rank);
  std::vector<double> result = zeros<double>(extents);
  if (result.empty())
    return {Tensor(theta.dtype(), extents)};
  const std::vector<double> matrices = widen<double>(theta);
  const Extents strides = row_major_strides(sizes);
  const int64_t plane = element_count(sizes);
  auto to = result.begin();
  for (int64_t image = 0; image < batch; ++image)
    for (int64_t at = 0; at < plane; ++at) {
      std::vector<double> position;  // from -1 to 1, the innermost dimension first, and a one
      for (size_t axis = sizes.size(); axis-- > 0;) {
        const auto index = static_cast<double>(at / strides[axis] % sizes[axis]);
        const auto length = static_cast<double>(sizes[axis]);
        position.push_back(!align_corners ? (2 * index + 1) / length - 1
                           : length == 1  ? 0
                                          : 2 * index / (length - 1) - 1);
      }
      position.push_back(1);
      for (int64_t row = 0; row < rank; ++row) {
        double sum = 0;
        for (int64_t i = 0; i <= rank; ++i)
          sum += matrices[static_cast<size_t>((image * rank + row) * (rank + 1) + i)] *
                 position[static_cast<size_t>(i)];
        *to++ = sum;
      }
    }
  return {narrow<double>(theta.dtype(), extents, result)};
}

void lower(LowerContext& c) {
  const Value theta = c.node().in("theta"), y = c.node().result();
  const bool align_corners = c.node().attr("align_corners");
  const int64_t rank = y.rank() - 2;
  const std::vector<Dim> size = vector_dims(c.node(), "size", static_cast<size_t>(rank + 2));
  if (theta.dim(1) != Dim(rank) || theta.dim(2) != Dim(rank + 1) || size[0] != theta.dim(0))
    return;
  const auto number = [](double value) { return loops::constant(DType::F64, value); };
  // From -1 to 1.
  const auto position = [&](const Scalar& index, const Dim& count) {
    const Scalar at = Scalar::cast(DType::F64, index),
                 length = Scalar::cast(DType::F64, Scalar::index(count));
    if (!align_corners)
      return (at * 2 + 1) / length - 1;
    return select(equal(length, number(1)), number(0), at * 2 / (length - 1) - 1);
  };
  c.define([&](const Index& at) {
    const auto entry = [&](int64_t column) {
      return Scalar::cast(DType::F64, c.stored(theta, {at.front(), at.back(), Scalar::index(column)}));
    };
    Scalar sum = number(0);
    for (int64_t i = 0; i < rank; ++i)  // the innermost dimension comes first
      sum = sum + entry(i) * position(at[static_cast<size_t>(rank - i)], y.dim(rank - i));
    return sum + entry(rank);
  });
}

// The positions are theta times those before, with a 1 behind each: what theta does that moves nothing.
std::vector<Operand> grad(const GradContext& n) {
  const Value theta = n.in("theta"), dy = n.dy();
  const Value still = eye(concat({size_along(theta, 1), size_along(theta, 2)}, 0), theta.dtype());
  const Value grid = n.repeat({{"theta", broadcast_to(still, shape_of(theta))}});
  const auto as_list = [&](Value x) {
    return reshape(x, concat({size_along(x, 0), int_vector(n.graph(), {-1}), size_along(x, -1)}, 0));
  };
  const Value places = as_list(grid), ones = ones_like(slice(places, 2, 0, 1));
  return {{"theta", matmul(as_list(dy), concat({places, ones}, 2), {.a = true})}};
}

}  // namespace affine_grid_op

// --- col2im ---

namespace col2im_op {

Types infer(const Node& n) {
  const Value x = n.in("x"), image = n.in("image_shape");
  if (x.rank() != 3 || image.rank() != 1 || n.in("block_shape").rank() != 1)
    throw operand_error(n,
                        "x must be [batch, channels · cells, blocks], image_shape and block_shape vectors");
  const auto sizes = image.known_dims(), kernel = n.in("block_shape").known_dims();
  std::vector<Dim> dims = {x.dim(0), Dim()};
  if (kernel) {
    Dim cells = 1;
    for (const Dim& each : *kernel)
      cells = cells * each;
    const auto channels = divide_exactly(x.dim(1), cells);
    assume_multiple(x.dim(1), cells);
    if (!channels && x.dim(1).is_constant() && cells.is_constant())
      throw operand_error(n,
                          fmt::format("{} channels do not divide into blocks of {} cells", x.dim(1), cells));
    dims[1] = channels.value_or(Dim());
  }
  const auto rank = known_length(n, "image_shape");
  if (!rank)
    return {Type::tensor(x.dtype(), Shape::unranked())};
  const std::vector<Dim> spatial = vector_dims(n, "image_shape", static_cast<size_t>(*rank));
  check_sizes(n, "image_shape", spatial);
  if (sizes && kernel) {
    if (sizes->size() != kernel->size())
      throw operand_error(n, "image_shape and block_shape must have the same length");
    Dim blocks = 1;
    for (const Dim& count :
         count_windows(n, window_of(n, static_cast<int64_t>(sizes->size())), *sizes, *kernel))
      blocks = blocks * count;
    if (provably_different(blocks, x.dim(2)))
      throw operand_error(n, fmt::format("x has {} blocks, but {} fit into the image", x.dim(2), blocks));
  }
  dims.insert(dims.end(), spatial.begin(), spatial.end());
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const Extents sizes = as_ints(c.in("image_shape")), kernel = as_ints(c.in("block_shape"));
  if (x.rank() != 3 || sizes.size() != kernel.size() || sizes.empty())
    throw user_error("col2im: x is [{}], image_shape [{}] and block_shape [{}]", fmt::join(x.extents(), ","),
                     fmt::join(sizes, ","), fmt::join(kernel, ","));
  const int64_t plane = element_count(sizes);  // refuses what is negative
  const Window window = window_of(c.node(), static_cast<int64_t>(sizes.size()));
  const Extents counts = count_windows(c.node(), window, sizes, kernel);
  const int64_t cells = element_count(kernel), blocks = element_count(counts);
  if (x.extent(1) % cells != 0 || x.extent(2) != blocks)
    throw user_error("col2im: x is [{}], but must have a multiple of {} channels and {} blocks",
                     fmt::join(x.extents(), ","), cells, blocks);
  Extents extents = {x.extent(0), x.extent(1) / cells};
  extents.insert(extents.end(), sizes.begin(), sizes.end());
  if (x.count() == 0)
    return {Tensor(x.dtype(), extents)};
  const Sliding sliding(window, sizes, kernel, counts);
  const int64_t planes = extents[0] * extents[1];
  return with_wide(x.dtype(), [&]<class T>(T) -> Data {
    const std::vector<T> from = widen<T>(x);
    std::vector<T> result = zeros<T>(extents);
    for (int64_t i = 0; i < planes; ++i)
      sliding.for_each_cell([&](int64_t cell, auto&& for_each_row) {
        const T* block = from.data() + (i * cells + cell) * blocks;
        T* image = result.data() + i * plane;
        for_each_row([&](int64_t at, int64_t element, int64_t count, int64_t step) {
          for (int64_t j = 0; j < count; ++j) {
            T& to = image[element + j * step];
            to = sum_of(to, block[at + j]);
          }
        });
      });
    return {narrow<T>(x.dtype(), extents, result)};
  });
}

void lower(LowerContext& c) {
  const Value x = c.node().in("x"), y = c.node().result();
  const auto kernel = c.node().in("block_shape").known_ints();
  if (!kernel)
    return;
  const std::span<const Dim> sizes = std::span(y.shape().dims()).subspan(2);
  const std::vector<Dim> cells(kernel->begin(), kernel->end());
  const Window window = window_of(c.node(), static_cast<int64_t>(cells.size()));
  const std::vector<Dim> counts = count_windows(c.node(), window, sizes, cells);
  if (x.dim(2) != Shape(counts).element_count() || x.dim(1) != y.dim(1) * Shape(cells).element_count())
    return;
  const auto number_of = [](std::span<const Scalar> at, const std::vector<Dim>& within) {
    Dim number = 0;
    for (size_t i = 0; i < at.size(); ++i)
      number = number * within[i] + at[i].index();
    return number;
  };
  const Scalar zero = Scalar::zero(wide_dtype(x.dtype()));
  c.define(c.reduce(y.shape().dims(), cells, "+", zero, [&](const Index& at, const Index& over) {
    const SeenElement seen = window_on_element(window, counts, std::span(at).subspan(2), over);
    const Dim channel = at[1].index() * Shape(cells).element_count() + number_of(over, cells);
    const Scalar element =
        c.in(x, {at[0], Scalar::index(channel), Scalar::index(number_of(seen.at, counts))});
    return seen.inside ? select(*seen.inside, element, zero) : element;
  }));
}

// The blocks of an image: what filters see that each look at one cell.
std::vector<Operand> grad(const GradContext& n) {
  const Value dy = n.dy(), block = n.in("block_shape"), rest = int_vector(n.graph(), {-1}),
              one = int_vector(n.graph(), {1});
  const Value cells = reduce_prod(block, {0}, Keep::Dims);
  const Value filters = reshape(eye(concat({cells, cells}, 0), dy.dtype()), concat({cells, one, block}, 0));
  const Value planes = reshape(dy, concat({rest, one, slice(shape_of(dy), 0, 2, kToTheEnd)}, 0));
  const Window window = window_of(n.node(), dy.rank() - 2);
  const Value blocks =
      n.graph().create("conv", {{"x", planes}, {"w", filters}}, window_attributes(window, 1))->result();
  return {{"x", reshape(blocks, shape_of(n.in("x")))}};
}

}  // namespace col2im_op

}  // namespace

const Family& image_ops() {
  static const Family ops = {
      {.name = "grid_sample",
       .doc = "x: [batch, channels, …] seen at the positions in grid: [batch, …, spatial rank], from -1 to 1",
       .operands = {{"x", "T"}, {"grid", "G"}},
       .attributes = {{"mode", AttributeKind::String, "nearest, linear or cubic", "linear"},
                      {"outside", AttributeKind::String, "what lies outside x: zeros, border or reflection",
                       "zeros"},
                      {"align_corners", AttributeKind::Bool,
                       "whether -1 and 1 are the centres of the outermost elements; else their outer borders",
                       false}},
       .results = {{"y", "T"}},
       .types = {{"T", AnyDType}, {"G", Floats}},
       .infer = grid_sample_op::infer,
       .eval = grid_sample_op::eval,
       .decompose = grid_sample_op::decompose},
      {.name = "affine_grid",
       .doc = "the positions that matrices theta: [batch, rank, rank + 1] move those of an image of the "
              "given size to",
       .operands = {{"theta", "T"}, {"size", "i64"}},
       .attributes = {{"align_corners", AttributeKind::Bool,
                       "whether -1 and 1 are the centres of the outermost elements; else their outer borders",
                       false}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = affine_grid_op::infer,
       .eval = affine_grid_op::eval,
       .lower = affine_grid_op::lower,
       .grad = affine_grid_op::grad},
      {.name = "col2im",
       .doc = "blocks x: [batch, channels · cells, blocks] added up where they overlap in an image",
       .operands = {{"x", "T"}, {"image_shape", "i64"}, {"block_shape", "i64"}},
       .attributes = with_window({}),
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .infer = col2im_op::infer,
       .eval = col2im_op::eval,
       .lower = col2im_op::lower,
       .grad = col2im_op::grad},
  };
  return ops;
}

}  // namespace tenon
