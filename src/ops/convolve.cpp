#include "ops/convolve.h"

#include <algorithm>

#include "ir/size_condition.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/convolve_gradient.h"
#include "ops/data.h"
#include "ops/elements.h"
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
#include "ops/window.h"

namespace tenon {
namespace {

Extents spatial(const Tensor& t) { return Extents(t.extents().begin() + 2, t.extents().end()); }
std::span<const Dim> spatial(Value v) { return std::span(v.shape().dims()).subspan(2); }

std::vector<Dim> as_dims(const Extents& extents) { return {extents.begin(), extents.end()}; }

void check_groups(const Node& n, std::string_view name) {
  constexpr int64_t most = (int64_t{1} << 31) - 1;  // so that products with a size do not overflow
  if (const int64_t groups = n.attr(name); groups < 1 || groups > most)
    throw user_error("{}: {} is {}, but must be from 1 to {}", n.op().name, name, groups, most);
}

// What all of them ask.
void check_operands(const Node& n, int64_t x_rank, int64_t w_rank) {
  if (x_rank < 3)
    throw operand_error(n, "x has no spatial dimension; it must be [batch, channels, spatial…]");
  if (w_rank != x_rank)
    throw operand_error(n, "x and w must have the same rank");
  check_groups(n, "groups");
}

void check_divides(const Node& n, std::string_view what, const Dim& count) {
  const int64_t groups = n.attr("groups");
  assume_multiple(count, groups);
  if (count.is_constant() && *count.constant() % groups != 0)
    throw operand_error(n, fmt::format("{} {} do not divide into {} groups", count, what, groups));
}

// Every plane of w: [outer, inner, kernel…] joins two others of each image: one for each `outer`, and one for
// each `inner` of each group. Calls f(plane of the first kind, plane of the second, plane of w).
template <class F>
void for_each_plane(int64_t batch, int64_t groups, const Tensor& w, F&& f) {
  const int64_t outer = w.extent(0), inner = w.extent(1);
  for (int64_t image = 0; image < batch; ++image)
    for (int64_t i = 0; i < outer; ++i) {
      const int64_t group = image * groups + i / (outer / groups);
      for (int64_t j = 0; j < inner; ++j)
        f(image * outer + i, group * inner + j, i * inner + j);
    }
}

// --- conv ---

namespace conv_op {

// x: [batch, channels, …], w: [filters, channels / groups, kernel…]
void check(const Node& n, const Dim& x_channels, const Dim& w_channels, const Dim& filters) {
  const int64_t groups = n.attr("groups");
  check_divides(n, "filters", filters);
  if (provably_different(x_channels, w_channels * groups))
    throw operand_error(
        n, fmt::format("x has {} channels, but w is for {}{}", x_channels, w_channels * groups,
                       groups == 1 ? "" : fmt::format(": {} in each of {} groups", w_channels, groups)));
}

Types infer(const Node& n) {
  const Value x = n.in("x"), w = n.in("w");
  check_operands(n, x.rank(), w.rank());
  check(n, x.dim(1), w.dim(1), w.dim(0));
  std::vector<Dim> dims = {x.dim(0), w.dim(0)};
  for (Dim& count : count_windows(n, window_of(n, x.rank() - 2), spatial(x), spatial(w)))
    dims.push_back(std::move(count));
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &w = c.in("w");
  const int64_t groups = c.attr("groups");
  check_operands(c.node(), x.rank(), w.rank());
  check(c.node(), x.extent(1), w.extent(1), w.extent(0));
  const Window window = window_of(c.node(), x.rank() - 2);
  const Extents counts = count_windows(c.node(), window, spatial(x), spatial(w));
  Extents extents = {x.extent(0), w.extent(0)};
  extents.insert(extents.end(), counts.begin(), counts.end());
  if (x.count() == 0 || w.count() == 0)
    return {Tensor(x.dtype(), extents)};
  const Sliding sliding(window, spatial(x), spatial(w), counts);
  const int64_t x_plane = element_count(spatial(x)), w_plane = element_count(spatial(w)),
                y_plane = element_count(counts);
  return with_wide(x.dtype(), [&]<class T>(T) -> Data {
    const std::vector<T> from = widen<T>(x), weights = widen<T>(w);
    std::vector<T> result = zeros<T>(extents);
    if (result.empty())
      return {Tensor(x.dtype(), extents)};
    // Cell by cell of the kernel, so that the innermost loop runs along a row of the result.
    for_each_plane(x.extent(0), groups, w, [&](int64_t filter, int64_t channel, int64_t pair) {
      T* to = result.data() + filter * y_plane;
      const T *plane = from.data() + channel * x_plane, *kernel = weights.data() + pair * w_plane;
      sliding.for_each_cell([&](int64_t cell, auto&& for_each_row) {
        const T weight = kernel[cell];
        for_each_row([&](int64_t at, int64_t element, int64_t count, int64_t step) {
          for (int64_t i = 0; i < count; ++i)
            add_product(to[at + i], weight, plane[element + i * step]);
        });
      });
    });
    return {narrow<T>(x.dtype(), extents, result)};
  });
}

// The window as numbers, which gradients need.
Window known_window(const GradContext& n, Value x, Value w) {
  const auto window = explicit_window(n.node(), x, spatial(w));
  if (!window)
    throw n.decline("the padding depends on dynamic sizes");
  return *window;
}

std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), w = n.in("w"), dy = n.dy();
  const Window window = known_window(n, x, w);
  const int64_t groups = n.attr("groups");
  return {{"x", spread_windows(dy, w, x, window, groups)},
          {"w", correlate_windows(dy, w, x, window, groups)}};
}

void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value x = n.in("x"), w = n.in("w"), y = n.result();
  const int64_t groups = n.attr("groups");
  const auto window = explicit_window(n, x, spatial(w));
  if (!window || !w.dim(0).is_constant())
    return;
  std::vector<Dim> reduced(w.shape().dims().begin() + 1, w.shape().dims().end());
  const int64_t filters_per_group = std::max<int64_t>(*w.dim(0).constant() / groups, 1);
  const Scalar zero = Scalar::zero(wide_dtype(x.dtype()));
  c.define(c.reduce(y.shape().dims(), reduced, "+", zero, [&](const Index& at, const Index& over) {
    const SeenElement seen =
        seen_element(*window, spatial(x), std::span(at).subspan(2), std::span(over).subspan(1));
    // The channels of the group that the filter belongs to.
    const Scalar channel =
        groups == 1 ? over[0]
                    : Scalar::index(floor_div(at[1].index(), filters_per_group) * w.dim(1)) + over[0];
    Index from{at[0], channel}, of_w{at[1]};
    from.insert(from.end(), seen.at.begin(), seen.at.end());
    of_w.insert(of_w.end(), over.begin(), over.end());
    const Scalar element = LowerContext::require_equal(x.dim(1), w.dim(1) * groups, c.in(x, from));
    return (seen.inside ? select(*seen.inside, element, zero) : element) * c.in(w, of_w);
  }));
}

}  // namespace conv_op

// --- conv_transpose ---

namespace conv_transpose_op {

// x: [batch, channels, …], w: [channels, filters / groups, kernel…]
void check(const Node& n, const Dim& x_channels, const Dim& w_channels) {
  check_divides(n, "channels", x_channels);
  if (provably_different(x_channels, w_channels))
    throw operand_error(n, fmt::format("x has {} channels, but w is for {}", x_channels, w_channels));
}

// The windows slide over the result: one for each element of x.
std::vector<Dim> result_sizes(const Node& n, const Window& window, std::span<const Dim> counts,
                              std::span<const Dim> kernel) {
  const std::vector<int64_t>& extra = checked_list(n, "output_padding", counts.size(), 0);
  std::vector<Dim> sizes;
  for (size_t i = 0; i < counts.size(); ++i) {
    const Slide& slide = window.slides[i];
    const Dim size = (counts[i] - 1) * slide.stride + (kernel[i] - 1) * slide.dilation + 1 + extra[i] -
                     slide.before - slide.after;
    assume_at_most(0, size);
    assume_at_most(size, kLargestWindowed);
    if (size.is_constant() && *size.constant() < 0)
      throw operand_error(n, fmt::format("the padding leaves nothing of spatial dimension {}", i));
    if (size.constant().value_or(0) > kLargestWindowed)
      throw operand_error(n, fmt::format("spatial dimension {} would have {} elements", i, size));
    sizes.push_back(size);
  }
  return sizes;
}

Types infer(const Node& n) {
  const Value x = n.in("x"), w = n.in("w");
  check_operands(n, x.rank(), w.rank());
  check(n, x.dim(1), w.dim(0));
  std::vector<Dim> dims = {x.dim(0), w.dim(1) * n.attr("groups").as<int64_t>()};
  for (Dim& size : result_sizes(n, window_of(n, x.rank() - 2), spatial(x), spatial(w)))
    dims.push_back(std::move(size));
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &w = c.in("w");
  const int64_t groups = c.attr("groups");
  check_operands(c.node(), x.rank(), w.rank());
  check(c.node(), x.extent(1), w.extent(0));
  const Extents counts = spatial(x), kernel = spatial(w);
  const Window window = window_of(c.node(), x.rank() - 2);
  Extents extents = {x.extent(0)}, sizes;
  const auto add_size = [&](const Dim& size) {
    if (!size.is_constant())
      throw user_error("conv_transpose: the result would be too large for x: {} and w: {}", type_of(x),
                       type_of(w));
    extents.push_back(*size.constant());
  };
  add_size(Dim(w.extent(1)) * groups);
  for (const Dim& size : result_sizes(c.node(), window, as_dims(counts), as_dims(kernel)))
    add_size(size);
  sizes.assign(extents.begin() + 2, extents.end());
  if (x.count() == 0 || w.count() == 0)
    return {Tensor(x.dtype(), extents)};
  const int64_t x_plane = element_count(counts), w_plane = element_count(kernel),
                y_plane = element_count(sizes);
  const Sliding sliding(window, sizes, kernel, counts);
  return with_wide(x.dtype(), [&]<class T>(T) -> Data {
    const std::vector<T> from = widen<T>(x), weights = widen<T>(w);
    std::vector<T> result = zeros<T>(extents);
    if (result.empty())
      return {Tensor(x.dtype(), extents)};
    for_each_plane(x.extent(0), groups, w, [&](int64_t channel, int64_t filter, int64_t pair) {
      T* to = result.data() + filter * y_plane;
      const T *plane = from.data() + channel * x_plane, *cells = weights.data() + pair * w_plane;
      sliding.for_each_cell([&](int64_t cell, auto&& for_each_row) {
        const T weight = cells[cell];
        for_each_row([&](int64_t at, int64_t element, int64_t count, int64_t step) {
          for (int64_t i = 0; i < count; ++i)
            add_product(to[element + i * step], weight, plane[at + i]);
        });
      });
    });
    return {narrow<T>(x.dtype(), extents, result)};
  });
}

// An element gathers what the windows whose cells fall on it have to add.
void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value x = n.in("x"), w = n.in("w"), y = n.result();
  const int64_t groups = n.attr("groups");
  const std::optional<int64_t> channels = w.dim(0).constant();
  if (!channels || x.dim(1) != w.dim(0))
    return;
  const Window window = window_of(n, x.rank() - 2);
  std::vector<Dim> reduced = {*channels / groups};
  reduced.insert(reduced.end(), spatial(w).begin(), spatial(w).end());
  const Scalar zero = Scalar::zero(wide_dtype(x.dtype()));
  c.define(c.reduce(y.shape().dims(), reduced, "+", zero, [&](const Index& at, const Index& over) {
    const SeenElement seen =
        window_on_element(window, spatial(x), std::span(at).subspan(2), std::span(over).subspan(1));
    const Dim group = groups == 1 ? Dim(0) : floor_div(at[1].index(), w.dim(1));
    const Scalar channel = Scalar::index(group * (*channels / groups) + over[0].index());
    Index from{at[0], channel}, of_w{channel, Scalar::index(at[1].index() - group * w.dim(1))};
    from.insert(from.end(), seen.at.begin(), seen.at.end());
    of_w.insert(of_w.end(), over.begin() + 1, over.end());
    const Scalar product = c.in(x, from) * c.in(w, of_w);
    return seen.inside ? select(*seen.inside, product, zero) : product;
  }));
}

// conv and conv_transpose are each other's gradient, so the roles of x and dy are those in conv, swapped.
std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), w = n.in("w"), dy = n.dy();
  const Window window = window_of(n.node(), x.rank() - 2);
  const int64_t groups = n.attr("groups");
  Value dx = n.graph().create("conv", {{"x", dy}, {"w", w}}, window_attributes(window, groups))->result();
  for (int64_t axis = 2; axis < x.rank(); ++axis)
    dx = cut_to(dx, x, axis);
  return {{"x", dx}, {"w", correlate_windows(x, w, dy, window, groups)}};
}

}  // namespace conv_transpose_op

// --- deform_conv ---

namespace deform_conv_op {

// `offset` moves every cell of every window: [batch, offset groups · cells · spatial rank, windows…]; `mask`,
// where given, scales what it sees: [batch, offset groups · cells, windows…].
void check(const Node& n, const Dim& x_channels, const Dim& cells, int64_t spatial_rank, const Shape& offset,
           const Shape& mask) {
  const int64_t offset_groups = n.attr("offset_groups");
  check_groups(n, "offset_groups");
  assume_multiple(x_channels, offset_groups);
  if (x_channels.is_constant() && *x_channels.constant() % offset_groups != 0)
    throw operand_error(
        n, fmt::format("{} channels do not divide into {} offset groups", x_channels, offset_groups));
  const auto check_channels = [&](std::string_view name, const Shape& shape, const Dim& wanted) {
    if (shape.rank() != spatial_rank + 2)
      throw operand_error(n, fmt::format("x and {} must have the same rank", name));
    if (provably_different(shape[1], wanted))
      throw operand_error(n, fmt::format("{} has {} channels, but {} are wanted", name, shape[1], wanted));
  };
  check_channels("offset", offset, cells * offset_groups * spatial_rank);
  check_channels("mask", mask, cells * offset_groups);
}

Types infer(const Node& n) {
  const Value x = n.in("x"), w = n.in("w"), offset = n.in("offset");
  Types types = conv_op::infer(n);
  Dim cells = 1;
  for (const Dim& dim : spatial(w))
    cells = cells * dim;
  Shape mask = n.has("mask") ? n.in("mask").shape() : Shape::unknown(x.rank());
  check(n, x.dim(1), cells, x.rank() - 2, offset.shape(), mask);
  const Shape& shape = types.front().as_tensor().shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != 1 && provably_different(shape[i], offset.dim(i)))
      throw operand_error(n, fmt::format("dimension {} of offset is {}, but that of the result is {}", i,
                                         offset.dim(i), shape[i]));
  return types;
}

// What one cell sees in every window of one image: [channels, windows…].
struct Look {
  const Extents &sizes, &kernel, &counts;
  const Window& window;
  int64_t channels, offset_groups;
  std::vector<double> x, offset, mask;  // no mask: empty

  std::vector<double> see(int64_t image, int64_t cell) const {
    const int64_t rank = static_cast<int64_t>(sizes.size()), windows = element_count(counts),
                  plane = element_count(sizes), per_group = channels / offset_groups;
    const Extents cell_strides = row_major_strides(kernel), window_strides = row_major_strides(counts);
    std::vector<double> seen(static_cast<size_t>(channels * windows));
    for (int64_t group = 0; group < offset_groups; ++group) {
      const int64_t move = (image * offset_groups + group) * element_count(kernel) + cell;
      for (int64_t at = 0; at < windows; ++at) {
        std::vector<Taps> taps;
        for (int64_t i = 0; i < rank; ++i) {
          const auto axis = static_cast<size_t>(i);
          const Slide& slide = window.slides[axis];
          const int64_t home = at / window_strides[axis] % counts[axis] * slide.stride +
                               cell / cell_strides[axis] % kernel[axis] * slide.dilation - slide.before;
          taps.push_back(taps_inside(
              static_cast<double>(home) + offset[static_cast<size_t>((move * rank + i) * windows + at)],
              sizes[axis]));
        }
        const double scale = mask.empty() ? 1 : mask[static_cast<size_t>(move * windows + at)];
        for (int64_t channel = group * per_group; channel < (group + 1) * per_group; ++channel)
          seen[static_cast<size_t>(channel * windows + at)] =
              scale * sample(x.data() + (image * channels + channel) * plane, sizes, taps);
      }
    }
    return seen;
  }
};

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &w = c.in("w"), &offset = c.in("offset");
  const int64_t groups = c.attr("groups"), offset_groups = c.attr("offset_groups");
  check_operands(c.node(), x.rank(), w.rank());
  conv_op::check(c.node(), x.extent(1), w.extent(1), w.extent(0));
  const Extents sizes = spatial(x), kernel = spatial(w);
  const int64_t rank = x.rank() - 2, cells = element_count(kernel);
  const Window window = window_of(c.node(), rank);
  const Extents counts = count_windows(c.node(), window, sizes, kernel);
  check(c.node(), x.extent(1), cells, rank, Shape::of(offset.extents()),
        c.has("mask") ? Shape::of(c.in("mask").extents()) : Shape::unknown(x.rank()));
  const int64_t moves = offset.extent(1) / rank;  // one for each cell of each offset group
  if (moves / offset_groups != cells || cells * offset_groups * rank != offset.extent(1))
    throw user_error("deform_conv: offset has {} channels for {} cells in {} offset groups", offset.extent(1),
                     cells, offset_groups);
  Extents extents = {x.extent(0), w.extent(0)}, mask_extents = {x.extent(0), moves},
          offset_extents = {x.extent(0), offset.extent(1)};
  for (Extents* each : {&extents, &mask_extents, &offset_extents})
    each->insert(each->end(), counts.begin(), counts.end());
  if (offset.extents() != offset_extents || (c.has("mask") && c.in("mask").extents() != mask_extents))
    throw user_error("deform_conv: offset must be [{}], and mask [{}]", fmt::join(offset_extents, ","),
                     fmt::join(mask_extents, ","));
  std::vector<double> result = zeros<double>(extents);
  if (result.empty())
    return {Tensor(x.dtype(), extents)};
  const Look look{.sizes = sizes,
                  .kernel = kernel,
                  .counts = counts,
                  .window = window,
                  .channels = x.extent(1),
                  .offset_groups = offset_groups,
                  .x = widen<double>(x),
                  .offset = widen<double>(offset),
                  .mask = c.has("mask") ? widen<double>(c.in("mask")) : std::vector<double>()};
  const std::vector<double> weights = widen<double>(w);
  const int64_t filters = w.extent(0), channels = w.extent(1), windows = element_count(counts);
  for (int64_t image = 0; image < x.extent(0); ++image)
    for (int64_t cell = 0; cell < cells; ++cell) {
      const std::vector<double> seen = look.see(image, cell);
      for (int64_t filter = 0; filter < filters; ++filter)
        for (int64_t channel = 0; channel < channels; ++channel) {
          const double weight = weights[static_cast<size_t>((filter * channels + channel) * cells + cell)];
          const double* row = seen.data() + (filter / (filters / groups) * channels + channel) * windows;
          double* to = result.data() + (image * filters + filter) * windows;
          for (int64_t at = 0; at < windows; ++at)
            to[at] += weight * row[at];
        }
    }
  return {narrow<double>(x.dtype(), extents, result)};
}

// What a decomposition is made of: sizes as i64 vectors, and what the cells see.
class Nodes {
 public:
  explicit Nodes(const Node& n)
      : n_(n),
        x_(n.in("x")),
        rank_(x_.rank() - 2),
        dtype_(working_dtype(x_.dtype())),
        batch_(size_along(x_, 0)),
        channels_(size_along(x_, 1)),
        sizes_(slice(shape_of(x_), 0, 2, kToTheEnd)),
        kernel_(slice(shape_of(n.in("w")), 0, 2, kToTheEnd)),
        counts_(slice(shape_of(n.in("offset")), 0, 2, kToTheEnd)) {}

  // The columns are what each window sees, the rows of w its filters; both by group.
  Value make() const {
    const int64_t groups = n_.attr("groups");
    const Value filters = size_along(n_.in("w"), 0), group_count = vector({groups});
    const Value seen_by_one = size_along(n_.in("w"), 1) * reduce_prod(kernel_, {0}, Keep::Dims);
    const Value columns =
        reshape(see(), concat({batch_, group_count, seen_by_one, reduce_prod(counts_, {0}, Keep::Dims)}, 0));
    const Value rows =
        reshape(in_dtype(n_.in("w"), dtype_), concat({group_count, filters / group_count, seen_by_one}, 0));
    const Value y = reshape(matmul(rows, columns), concat({batch_, filters, counts_}, 0));
    return in_dtype(y, x_.dtype());
  }

 private:
  Value vector(const std::vector<int64_t>& values) const { return int_vector(n_.graph(), values); }

  // Where the cells of the windows look along one dimension: [batch, offset groups, kernel…, windows…].
  std::vector<TapNodes> find_taps(Value offsets, int64_t axis) const {
    const Slide slide = window_of(n_, rank_).slides[static_cast<size_t>(axis)];
    const auto count = [&](std::string_view name, int64_t place) {
      return count_along_axis(size_along(n_.in(name), axis + 2), place, 2 + 2 * rank_, dtype_);
    };
    const Value home = count("offset", 2 + rank_ + axis) * static_cast<double>(slide.stride) +
                       count("w", 2 + axis) * static_cast<double>(slide.dilation) -
                       static_cast<double>(slide.before);
    const Value at = home + squeeze(slice(offsets, 2 + rank_, axis, axis + 1), {2 + rank_});
    const Value is_near = logical_and(greater(at, scalar(n_.graph(), dtype_, -1)),
                                      less(at, length_along(x_, axis + 2, dtype_)));
    return taps_among(at, is_near, Filter::Linear, x_, axis + 2);
  }

  // [batch, offset groups, channels of each, kernel…, windows…]
  Value see() const {
    const int64_t offset_groups = n_.attr("offset_groups");
    const Value group_count = vector({offset_groups});
    const Value offsets = reshape(in_dtype(n_.in("offset"), dtype_),
                                  concat({batch_, group_count, kernel_, vector({rank_}), counts_}, 0));
    std::vector<std::vector<TapNodes>> taps;
    for (int64_t axis = 0; axis < rank_; ++axis)
      taps.push_back(find_taps(offsets, axis));
    // The channels of each offset group are an image of their own.
    const Value images = reshape(x_, concat({batch_ * group_count, channels_ / group_count, sizes_}, 0));
    const auto count = [&](Value counted, int64_t axis) {
      return count_along_axis(counted, axis, 2 + 2 * rank_, DType::I64);
    };
    const Value image = count(batch_, 0) * static_cast<double>(offset_groups) + count(group_count, 1);
    Value seen = blend(neighbours_in(images, image, taps));
    if (n_.has("mask")) {
      const Value shape = concat({batch_, group_count, kernel_, counts_, vector({1})}, 0);
      seen = seen * reshape(in_dtype(n_.in("mask"), dtype_), shape);
    }
    return with_channels_at(seen, 2);
  }

  const Node& n_;
  Value x_;
  int64_t rank_;
  DType dtype_;
  Value batch_, channels_, sizes_, kernel_, counts_;
};

std::vector<Value> decompose(const Node& n) {
  check_ranks_known(n);
  return {Nodes(n).make()};
}

}  // namespace deform_conv_op

Value make_convolution(std::string_view op, Value x, Value w, const WindowOptions& window, int64_t groups) {
  Attributes attributes = {{"groups", groups}};
  add_window(attributes, window);
  return x.graph().create(op, {{"x", x}, {"w", w}}, std::move(attributes))->result();
}

}  // namespace

Value conv(Value x, Value w, const WindowOptions& window, int64_t groups) {
  return make_convolution("conv", x, w, window, groups);
}

Value conv_transpose(Value x, Value w, const WindowOptions& window, int64_t groups) {
  return make_convolution("conv_transpose", x, w, window, groups);
}

const Family& convolve_ops() {
  static const AttributeDecl groups = {
      "groups", AttributeKind::Int, "the channels fall into so many groups, each with filters of its own", 1};
  static const Family ops = {
      {.name = "conv",
       .doc = "x: [batch, channels, …] correlated with filters w: [filters, channels / groups, kernel…]",
       .operands = {{"x", "T"}, {"w", "T"}},
       .attributes = with_padded_window({groups}),
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .infer = conv_op::infer,
       .eval = conv_op::eval,
       .lower = conv_op::lower,
       .grad = conv_op::grad},
      {.name = "conv_transpose",
       .doc = "each element of x: [batch, channels, …] adds a multiple of w: [channels, filters / groups, "
              "kernel…] to the result: the gradient of conv",
       .operands = {{"x", "T"}, {"w", "T"}},
       .attributes = with_window(
           {groups,
            {"output_padding", AttributeKind::Ints, "elements more at the end of each spatial dimension",
             std::nullopt, Binding::Early, ComputedDefault{"zeros", spatial_zeros}}}),
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .infer = conv_transpose_op::infer,
       .eval = conv_transpose_op::eval,
       .lower = conv_transpose_op::lower,
       .grad = conv_transpose_op::grad},
      {.name = "deform_conv",
       .doc = "conv, but each cell of each window looks at x where `offset` moves it, and `mask` scales what "
              "it sees",
       .operands = {{"x", "T"}, {"w", "T"}, {"offset", "T"}, {"mask", "T", Arity::Optional}},
       .attributes =
           with_window({groups,
                        {"offset_groups", AttributeKind::Int,
                         "the channels fall into so many groups, each with offsets of its own", 1}}),
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = deform_conv_op::infer,
       .eval = deform_conv_op::eval,
       .decompose = deform_conv_op::decompose},
  };
  return ops;
}

}  // namespace tenon
