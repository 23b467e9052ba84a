#include "ops/pool.h"

#include <cmath>
#include <limits>

#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/convolve_gradient.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/lower_window.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "ops/window.h"

namespace tenon {
namespace {

Rounding rounding_of(const Node& n) { return n.attr("round_up") ? Rounding::Up : Rounding::Down; }

void check_rank(const Node& n, int64_t rank) {
  if (rank < 3)
    throw operand_error(n, "x has no spatial dimension; it must be [batch, channels, spatial…]");
}

// The shape of the result: batch and channels stay.
Shape infer_shape(const Node& n) {
  const Value x = n.in("x");
  check_rank(n, x.rank());
  const std::vector<int64_t>& kernel = checked_list(n, "kernel", static_cast<size_t>(x.rank() - 2), 1);
  std::vector<Dim> dims = {x.dim(0), x.dim(1)};
  for (Dim& count : count_windows(n, window_of(n, x.rank() - 2), std::span(x.shape().dims()).subspan(2),
                                  std::vector<Dim>(kernel.begin(), kernel.end()), rounding_of(n)))
    dims.push_back(std::move(count));
  return dims;
}

Types infer(const Node& n) { return {Type::tensor(n.in("x").dtype(), infer_shape(n))}; }

// The sliding window of a pool over actual elements.
struct Pool {
  explicit Pool(const Call& c) : x(c.in("x")) {
    const Node& n = c.node();
    check_rank(n, x.rank());
    const Extents sizes(x.extents().begin() + 2, x.extents().end());
    const Extents& kernel = checked_list(n, "kernel", sizes.size(), 1);
    const Window window = window_of(n, x.rank() - 2);
    const Extents counts = count_windows(n, window, sizes, kernel, rounding_of(n));
    extents = {x.extent(0), x.extent(1)};
    extents.insert(extents.end(), counts.begin(), counts.end());
    if (element_count(extents) == 0)
      return;
    planes = x.extent(0) * x.extent(1);
    x_plane = x.count() / planes;
    result_plane = element_count(counts);
    sliding.emplace(window, sizes, kernel, counts);
  }

  // Calls f(result index, x index) for every element that every window sees, plane by plane, cell by cell.
  template <class F>
  void for_each(F&& f) const {
    for (int64_t plane = 0; plane < planes; ++plane)
      sliding->for_each_cell([&](int64_t, auto&& for_each_row) {
        for_each_row([&](int64_t window, int64_t element, int64_t count, int64_t step) {
          for (int64_t i = 0; i < count; ++i)
            f(static_cast<size_t>(plane * result_plane + window + i),
              static_cast<size_t>(plane * x_plane + element + i * step));
        });
      });
  }

  const Tensor& x;
  Extents extents;                 // of the result
  std::optional<Sliding> sliding;  // nothing slides where the result is empty
  int64_t planes = 0, x_plane = 0, result_plane = 0;
};

// --- max_pool ---

namespace max_pool_op {

Types infer(const Node& n) {
  const Shape shape = infer_shape(n);
  return {Type::tensor(n.in("x").dtype(), shape), Type::tensor(DType::I64, shape)};
}

// A row-major index into x, as an index into planes of x that are stored column by column.
int64_t column_major(int64_t index, const Extents& extents) {
  int64_t plane_stride = 1;
  for (size_t axis = 2; axis < extents.size(); ++axis)
    plane_stride *= extents[axis];
  int64_t rest = index % plane_stride, within = 0, stride = plane_stride;
  for (size_t axis = extents.size(); axis-- > 2;) {
    stride /= extents[axis];
    within += rest % extents[axis] * stride;
    rest /= extents[axis];
  }
  return index - index % plane_stride + within;
}

// The first of several greatest elements counts; NaN is greater than any.
Data eval(const Call& c) {
  const Pool pool(c);
  if (pool.planes == 0)
    return {Tensor(pool.x.dtype(), pool.extents), Tensor(DType::I64, pool.extents)};
  std::vector<int64_t> indices = zeros<int64_t>(pool.extents, -1);
  Tensor greatest = with_wide(pool.x.dtype(), [&]<class T>(T) {
    const std::vector<T> values = widen<T>(pool.x);
    // What a window gives that sees only padding: the least there is, after narrowing.
    constexpr bool is_real = std::is_same_v<T, double>;
    std::vector<T> result = zeros<T>(
        pool.extents, is_real ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest());
    pool.for_each([&](size_t to, size_t from) {
      const T value = values[from], best = result[to];
      if (indices[to] < 0 || best < value || (value != value && best == best)) {
        result[to] = value;
        indices[to] = static_cast<int64_t>(from);
      }
    });
    return narrow<T>(pool.x.dtype(), pool.extents, result, is_real ? Overflow::Natural : Overflow::Saturate);
  });
  if (c.attr("column_major"))
    for (int64_t& index : indices)
      index = index < 0 ? index : column_major(index, pool.x.extents());
  return {std::move(greatest), Tensor::of(std::span<const int64_t>(indices), pool.extents)};
}

}  // namespace max_pool_op

// --- average_pool ---

namespace average_pool_op {

Data eval(const Call& c) {
  const Pool pool(c);
  if (pool.planes == 0)
    return {Tensor(pool.x.dtype(), pool.extents)};
  const std::vector<double> values = widen<double>(pool.x);
  std::vector<double> result = zeros<double>(pool.extents);
  pool.for_each([&](size_t to, size_t from) { result[to] += values[from]; });

  // The number of cells is the product of those in each dimension, and the same in every plane.
  const bool count_padding = c.attr("count_padding");
  std::vector<double> cells = zeros<double>(pool.sliding->counts(), 1);
  int64_t inner = pool.result_plane;
  for (size_t axis = 0; axis < pool.sliding->counts().size(); ++axis) {
    const int64_t count = pool.sliding->counts()[axis];
    inner /= count;
    std::vector<double> along;
    for (int64_t i = 0; i < count; ++i)
      along.push_back(static_cast<double>(pool.sliding->count_cells(axis, i, count_padding)));
    for (size_t i = 0; i < cells.size(); ++i)
      cells[i] *= along[i / static_cast<size_t>(inner) % along.size()];
  }
  for (size_t i = 0; i < result.size(); ++i)
    result[i] /= cells[i % cells.size()];
  return {narrow<double>(pool.x.dtype(), pool.extents, result)};
}

}  // namespace average_pool_op

// --- lp_pool ---

namespace lp_pool_op {

Data eval(const Call& c) {
  const Pool pool(c);
  const double p = c.attr("p");
  std::vector<double> values = widen<double>(pool.x);
  for (double& value : values)
    value = std::pow(std::abs(value), p);
  std::vector<double> result = zeros<double>(pool.extents);
  pool.for_each([&](size_t to, size_t from) { result[to] += values[from]; });
  for (double& value : result)
    value = std::pow(value, 1 / p);
  return {narrow<double>(pool.x.dtype(), pool.extents, result)};
}

}  // namespace lp_pool_op

// --- max_unpool ---

namespace max_unpool_op {

Types infer(const Node& n) {
  const Value x = n.in("x"), shape = n.in("shape");
  if (x.rank() != n.in("indices").rank())
    throw operand_error(n, "x and indices must have the same shape");
  if (shape.rank() != 1)
    throw operand_error(n, "shape must be a vector");
  const auto rank = known_length(n, "shape");
  if (!rank)
    return {Type::tensor(x.dtype(), Shape::unranked())};
  const std::vector<Dim> dims = vector_dims(n, "shape", static_cast<size_t>(*rank));
  check_sizes(n, "shape", dims);
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &indices = c.in("indices");
  if (x.extents() != indices.extents())
    throw user_error("max_unpool: x is [{}], but indices is [{}]", fmt::join(x.extents(), ","),
                     fmt::join(indices.extents(), ","));
  Tensor result(x.dtype(), as_ints(c.in("shape")));
  const std::vector<int64_t> at = as_ints(indices);
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    const std::span<T> to = mutable_stored<T>(result);
    for (size_t i = 0; i < at.size(); ++i) {
      if (at[i] < 0 || at[i] >= result.count())
        throw user_error("max_unpool: index {} is out of range for {} elements", at[i], result.count());
      to[static_cast<size_t>(at[i])] = from[i];
    }
  });
  return {result};
}

}  // namespace max_unpool_op

// --- lowering ---

// Zeros, then x where the indices point, the last of several.
void lower_max_unpool(LowerContext& c) {
  const Value x = c.node().in("x"), indices = c.node().in("indices"), y = c.node().result();
  const std::vector<Dim> shape = vector_dims(c.node(), "shape", static_cast<size_t>(y.rank()));
  if (x.shape() != indices.shape() || shape != y.shape().dims())
    return;
  const std::string result = LowerContext::result_name(0);
  const std::vector<loops::Axis> of_y = LowerContext::axes(shape, "i"),
                                 of_x = LowerContext::axes(x.shape().dims(), "u");
  std::vector<loops::Statement> body =
      LowerContext::around(of_y, loops::Mark::Parallel,
                           {loops::Assign{.places = {{result, loops::variables_of(of_y)}},
                                          .combine = "",
                                          .values = {Scalar::zero(x.dtype())}}});
  const Index at = loops::variables_of(of_x);
  const Scalar given = c.stored(indices, at), count = Scalar::index(y.shape().element_count());
  Scalar rest = require(less_equal(Scalar::zero(DType::I64), given) && less(given, count), given);
  Index place(shape.size(), rest);
  for (size_t i = shape.size(); i-- > 0;) {
    const Scalar size = Scalar::index(shape[i]);
    place[i] = Scalar::apply(loops::Function::Remainder, {rest, size});
    rest = rest / size;
  }
  const loops::Assign write{.places = {{result, place}}, .combine = "", .values = {c.stored(x, at)}};
  for (loops::Statement& loop : LowerContext::around(of_x, loops::Mark::Serial, {write}))
    body.push_back(std::move(loop));
  c.nest(std::move(body));
}

// The elements that a window sees, combined; those in the padding count as `initial`.
struct LoweredPool {
  explicit LoweredPool(LowerContext& c) : c(c), x(c.node().in("x")) {
    for (int64_t cells : c.node().attr("kernel").as<Attribute::Ints>())
      kernel.emplace_back(cells);
    window = explicit_window(c.node(), x, kernel);
  }

  LowerContext::Formula operator()(std::string_view combine, const Scalar& initial,
                                   const std::function<Scalar(const Scalar&)>& value) const {
    return c.reduce(c.node().result().shape().dims(), kernel, combine, initial,
                    [&](const Index& at, const Index& over) {
                      const SeenElement seen = see(at, over);
                      Index from{at[0], at[1]};
                      from.insert(from.end(), seen.at.begin(), seen.at.end());
                      const Scalar element = value(c.in(x, from));
                      return seen.inside ? select(*seen.inside, element, initial) : element;
                    });
  }

  SeenElement see(const Index& at, const Index& over) const {
    return seen_element(*window, std::span(x.shape().dims()).subspan(2), std::span(at).subspan(2), over,
                        rounding_of(c.node()));
  }

  LowerContext& c;
  Value x;
  std::vector<Dim> kernel;
  std::optional<Window> window;
};

// The index in x of the element at a place.
Scalar index_in_x(Value x, const Index& at) {
  Dim index = 0;
  for (size_t i = 0; i < at.size(); ++i)
    index = index * x.dim(static_cast<int64_t>(i)) + at[i].index();
  return Scalar::index(index);
}

// The same where the elements of each plane are counted column by column.
Scalar index_by_column(Value x, const Scalar& index) {
  Dim plane = 1;
  for (int64_t axis = 2; axis < x.rank(); ++axis)
    plane = plane * x.dim(axis);
  const auto remainder = [](const Scalar& a, const Scalar& b) {
    return Scalar::apply(loops::Function::Remainder, {a, b});
  };
  Scalar rest = remainder(index, Scalar::index(plane)), by_column = index - rest;
  for (int64_t axis = x.rank() - 1; axis >= 2; --axis) {
    Dim stride = 1;
    for (int64_t before = 2; before < axis; ++before)
      stride = stride * x.dim(before);
    const Scalar size = Scalar::index(x.dim(axis));
    by_column = by_column + remainder(rest, size) * Scalar::index(stride);
    rest = rest / size;
  }
  return by_column;
}

// The greatest elements and their indices together; -1 for windows that see nothing.
void lower_with_indices(LowerContext& c, const LoweredPool& pool, const Scalar& least) {
  const bool column_major = c.node().attr("column_major");
  const DType dtype = compared_dtype(pool.x.dtype());
  const Scalar none = Scalar::cast(dtype, least), nowhere = loops::constant(DType::I64, -1);
  const auto both = c.reduce(
      c.node().result().shape().dims(), pool.kernel, preferred_pair(dtype, Choice::Greatest, false),
      {none, nowhere}, [&](const Index& at, const Index& over) {
        const SeenElement seen = pool.see(at, over);
        Index from{at[0], at[1]};
        from.insert(from.end(), seen.at.begin(), seen.at.end());
        const Scalar element = Scalar::cast(dtype, c.in(pool.x, from)), index = index_in_x(pool.x, from);
        if (!seen.inside)
          return std::vector{element, index};
        return std::vector{select(*seen.inside, element, none), select(*seen.inside, index, nowhere)};
      });
  c.define(0, both[0]);
  c.define(1, [&](const Index& at) {
    const Scalar index = both[1](at);
    return column_major ? select(less(index, Scalar::index(0)), index, index_by_column(pool.x, index))
                        : index;
  });
}

void lower_max_pool(LowerContext& c) {
  const LoweredPool pool(c);
  const DType dtype = c.node().in("x").dtype();
  if (!pool.window)
    return;
  const Scalar least = with_wide(dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, double>)
      return loops::constant(wide_dtype(dtype), -INFINITY);
    else
      return Scalar::number(
          dtype,
          static_cast<T>(std::is_signed_v<T> ? std::numeric_limits<T>::min() >> (64 - info(dtype).bits) : 0));
  });
  if (c.node().result(1).use_count() > 0)
    return lower_with_indices(c, pool, least);
  c.define(pool("max", least, [](const Scalar& element) { return element; }));
}

// How many cells count along an axis follows from where the window stands.
void lower_average_pool(LowerContext& c) {
  const LoweredPool pool(c);
  if (!pool.window)
    return;
  const DType dtype = wide_dtype(c.node().in("x").dtype());
  const bool count_padding = c.node().attr("count_padding");
  const auto sum = pool("+", Scalar::zero(dtype), [](const Scalar& element) { return element; });
  c.define([&](const Index& at) {
    Scalar cells =
        loops::constant(dtype, 1);  // no index: products of three counts have too many terms for one
    const auto multiply = [&](const Dim& count) {
      cells = cells * Scalar::cast(dtype, Scalar::index(count));
    };
    for (size_t i = 0; i < pool.kernel.size(); ++i) {
      const Slide& slide = pool.window->slides[i];
      const Dim& size = pool.x.dim(static_cast<int64_t>(i) + 2);
      const Dim first = at[i + 2].index() * slide.stride - slide.before;  // cell 0
      // The cells before `end`, less those before the first element.
      const Dim end = count_padding ? size + slide.after : size;
      const bool all = slide.before == 0 && slide.after == 0 && rounding_of(c.node()) == Rounding::Down;
      if (all || (count_padding && rounding_of(c.node()) == Rounding::Down)) {
        multiply(pool.kernel[i]);
        continue;
      }
      const Dim until = min(ceil_div(end - first, slide.dilation), pool.kernel[i]);
      const Dim before = count_padding ? Dim(0) : max(ceil_div(0 - first, slide.dilation), 0);
      multiply(until - before);
    }
    return sum(at) / cells;
  });
}

void lower_lp_pool(LowerContext& c) {
  const LoweredPool pool(c);
  if (!pool.window)
    return;
  const DType dtype = wide_dtype(c.node().in("x").dtype());
  const double p = c.node().attr("p");
  const auto sum = pool("+", Scalar::zero(dtype), [&](const Scalar& element) {
    return power(abs(element), loops::constant(dtype, p));
  });
  c.define([&](const Index& at) { return power(sum(at), loops::constant(dtype, 1 / p)); });
}

// --- gradients ---

// A window that sees only padding has index -1, and its result is no element of x.
std::vector<Operand> grad_max_pool(const GradContext& n) {
  const Value x = n.in("x");
  Value indices = n.out(1);
  if (n.attr("column_major")) {
    Attributes attributes = n.node().attributes();
    attributes.insert_or_assign("column_major", false);
    indices = n.graph().create("max_pool", {{"x", x}}, attributes)->result(1);
  }
  const Value inside = greater_equal(indices, constant(n.graph(), Tensor::scalar(int64_t{0})));
  return {{"x", add_at_positions(keep_where(inside, n.dy()), indices, x)}};
}

// The window of a pool as a filter of ones over planes without channels: [batch · channels, 1, …].
struct PlaneFilter {
  explicit PlaneFilter(const GradContext& n) : n(n), x(n.in("x")) {
    Attribute::Ints shape = {1, 1};
    for (int64_t cells : n.attr("kernel").as<Attribute::Ints>())
      shape.push_back(cells);
    ones = constant(n.graph(), Literal::splat(filled(x.dtype(), {}, 1), shape));
    const auto known = explicit_window(n.node(), x, std::span(ones.shape().dims()).subspan(2));
    if (!known)
      throw n.decline("the padding depends on dynamic sizes");
    window = *known;
  }

  Value as_planes(Value value) const {
    const Value one = int_vector(n.graph(), {1}), fitting = int_vector(n.graph(), {-1});
    return reshape(value, concat({fitting, one, slice(shape_of(value), 0, 2, kToTheEnd)}, 0));
  }

  // Each element of dy added to every element its window saw.
  Value spread(Value dy) const {
    return reshape(spread_windows(as_planes(dy), ones, as_planes(x), window, 1), shape_of(x));
  }

  // How many cells of each window count: those on elements, and on padding where that counts, too.
  Value count_cells() const {
    const bool with_padding = n.attr("count_padding");
    const Value one = int_vector(n.graph(), {1});
    const Value plane =
        fill(concat({one, one, slice(shape_of(x), 0, 2, kToTheEnd)}, 0), filled(x.dtype(), {}, 1));
    Window counting = window;
    Attribute::Ints pads;
    Axes axes;
    for (size_t i = 0; i < counting.slides.size(); ++i) {
      axes.push_back(static_cast<int64_t>(i) + 2);
      pads.push_back(counting.slides[i].before);
    }
    for (Slide& slide : counting.slides) {
      pads.push_back(slide.after);
      if (with_padding)
        slide.before = slide.after = 0;
      if (n.attr("round_up"))  // the last window may stand out
        slide.after += slide.stride - 1;
    }
    const Value seen =
        with_padding ? pad(plane, int_vector(n.graph(), pads), axes, scalar(n.graph(), x.dtype(), 1)) : plane;
    Value counts =
        n.graph().create("conv", {{"x", seen}, {"w", ones}}, window_attributes(counting, 1))->result();
    for (int64_t axis : axes)
      counts = cut_to(counts, n.out(), axis);
    return counts;
  }

  const GradContext& n;
  Value x, ones;
  Window window;
};

std::vector<Operand> grad_average_pool(const GradContext& n) {
  const PlaneFilter filter(n);
  return {{"x", filter.spread(n.dy() / filter.count_cells())}};
}

// d y / d x = sign(x) · (|x| / y)^(p - 1). Where y is 0, it is 0.
std::vector<Operand> grad_lp_pool(const GradContext& n) {
  const double p = n.attr("p");
  const Value x = n.in("x"), y = n.out();
  const Value some = greater(y, scalar(n.graph(), y.dtype(), 0));
  const Value weights = keep_where(some, n.dy() * pow(y, 1 - p));
  const Value powers = sign(x) * pow(abs(x), p - 1);
  return {{"x", PlaneFilter(n).spread(weights) * powers}};
}

std::vector<Operand> grad_max_unpool(const GradContext& n) {
  return {{"x", gather(reshape(n.dy(), {-1}), n.in("indices"), 0)}};
}

OpDef pool(std::string_view name, std::string_view doc, DTypeSet allowed, std::vector<AttributeDecl> own,
           EvalFunction eval, LowerFunction lower, GradFunction grad) {
  own.insert(own.begin(), {"kernel", AttributeKind::Ints, "the cells of a window in each spatial dimension"});
  own.push_back({"round_up", AttributeKind::Bool,
                 "whether the last window may stand out, if it starts before the padding at the end", false});
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .attributes = with_padded_window(std::move(own)),
          .results = {{"y", "T"}},
          .types = {{"T", allowed}},
          .infer = infer,
          .eval = eval,
          .lower = lower,
          .grad = grad};
}

Family make_ops() {
  OpDef max_pool = pool(
      "max_pool", "the greatest element each window sees, and its index in x; NaN if any is", NumbersAndBool,
      {{"column_major", AttributeKind::Bool, "whether indices count the elements of a plane column by column",
        false}},
      max_pool_op::eval, lower_max_pool, grad_max_pool);
  max_pool.results = {{"y", "T"}, {"indices", "i64"}};
  max_pool.infer = max_pool_op::infer;
  return {
      max_pool,
      pool("average_pool", "the mean of the elements each window sees", Floats,
           {{"count_padding", AttributeKind::Bool, "whether padding counts, as zeros", false}},
           average_pool_op::eval, lower_average_pool, grad_average_pool),
      pool("lp_pool", "(Σ |x|^p)^(1/p) over the elements each window sees", Floats,
           {{"p", AttributeKind::Float, "the exponent", 2.0}}, lp_pool_op::eval, lower_lp_pool, grad_lp_pool),
      {.name = "max_unpool",
       .doc = "zeros of the given shape, but x at the indices that max_pool gave",
       .operands = {{"x", "T"}, {"indices", "i64"}, {"shape", "i64"}},
       .results = {{"y", "T"}},
       .types = {{"T", Numbers}},
       .infer = max_unpool_op::infer,
       .eval = max_unpool_op::eval,
       .lower = lower_max_unpool,
       .grad = grad_max_unpool},
  };
}

Value make_pool(std::string_view op, Value x, const std::vector<int64_t>& kernel,
                const WindowOptions& window) {
  Attributes attributes = {{"kernel", kernel}};
  add_window(attributes, window);
  return x.graph().create(op, {{"x", x}}, std::move(attributes))->result(0);
}

}  // namespace

Value max_pool(Value x, const std::vector<int64_t>& kernel, const WindowOptions& window) {
  return make_pool("max_pool", x, kernel, window);
}

Value average_pool(Value x, const std::vector<int64_t>& kernel, const WindowOptions& window) {
  return make_pool("average_pool", x, kernel, window);
}

const Family& pool_ops() {
  static const Family ops = make_ops();
  return ops;
}

}  // namespace tenon
