#include "ops/slice.h"

#include <algorithm>
#include <limits>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/stack.h"

namespace tenon {
namespace {

// --- slice ---

namespace slice_op {

// What exporters write for "to the end", whatever the size.
constexpr int64_t kBeyondAnySize = std::numeric_limits<int32_t>::max();

struct Range {
  int64_t start, count;
};

// The positions a slice takes of n elements. Those that count from the end are made positive, then the start
// is moved to the nearest position there is, and the end to the nearest that is next to one.
Range clamp_range(int64_t n, int64_t start, int64_t end, int64_t step) {
  const bool forward = step > 0;
  start = std::clamp<int64_t>(start < 0 ? start + n : start, 0, std::max<int64_t>(forward ? n : n - 1, 0));
  end = std::clamp<int64_t>(end < 0 ? end + n : end, forward ? 0 : -1, n);
  const int64_t distance = forward ? end - start : start - end;
  if (n == 0 || distance <= 0)
    return {0, 0};
  const uint64_t stride = forward ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  return {start, 1 + static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / stride)};
}

// The position among n elements that a start or end means, counted from the front but not yet clamped;
// nothing where it is dynamic from which side it counts.
std::optional<Dim> from_front(const Dim& given, const Dim& n) {
  if (given.is_constant()) {
    const int64_t position = *given.constant();
    if (position >= kBeyondAnySize)
      return n;
    if (position <= -kBeyondAnySize)
      return Dim(-1);
    return position < 0 ? n + given : given;
  }
  if (given.lower_bound().value_or(-1) >= 0)
    return given;
  if ((0 - given).lower_bound().value_or(0) > 0)
    return n + given;
  // n-1 and n-2 are negative only where n is so small that, counted from the end, they are not positive.
  const Dim gap = n - given;
  return gap == Dim(1) || gap == Dim(2) ? std::optional(given) : std::nullopt;
}

// How many of n elements a slice takes: the distance from the lower to the upper end, in steps. The upper end
// is the lesser of what is asked for and of the limit, the lower end the greater; so the distance is the
// least of all pairs.
Dim range_count(const Dim& n, const Dim& start, const Dim& end, const Dim& step) {
  if (!step.is_constant())
    return Dim();
  if (n.is_constant() && start.is_constant() && end.is_constant())
    return clamp_range(*n.constant(), *start.constant(), *end.constant(), *step.constant()).count;
  const bool forward = *step.constant() > 0;
  // Backwards, a start before the front would move to it, and an end of n-2 is the first element where n is
  // 1: cases of their own that we do not follow.
  const auto may_be_negative = [](const Dim& place) { return place.lower_bound().value_or(-1) < 0; };
  if (!forward && ((may_be_negative(start) && start != Dim(-1) && n - start != Dim(1)) ||
                   (may_be_negative(end) && n - end == Dim(2))))
    return Dim();
  const auto first = from_front(start, n), last = from_front(end, n);
  if (!first || !last)
    return Dim();
  Dim count;
  bool any = false;
  for (const Dim& upper : {forward ? *last : *first, forward ? n : n - 1})
    for (const Dim& lower : {forward ? *first : *last, forward ? Dim(0) : Dim(-1)}) {
      const Dim distance = ceil_div(upper - lower, forward ? step : 0 - step);
      count = any ? min(count, distance) : distance;
      any = true;
    }
  return max(count, 0);
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (!x.shape().ranked())
    return {x.type()};
  if (n.is_late("axes"))
    return {Type::tensor(x.dtype(), Shape::unknown(x.rank()))};
  const std::vector<int64_t>& axes = n.attr("axes");
  checked_axes("slice", axes, x.rank());
  const auto starts = vector_dims(n, "starts", axes.size()), ends = vector_dims(n, "ends", axes.size());
  const auto steps = n.has("steps") ? vector_dims(n, "steps", axes.size()) : std::vector<Dim>(axes.size(), 1);
  std::vector<Dim> dims = x.shape().dims();
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == Dim(0))
      throw operand_error(n, fmt::format("steps[{}] is 0", i));
    Dim& dim = dims[static_cast<size_t>(checked_axis("slice", axes[i], x.rank()))];
    dim = range_count(dim, starts[i], ends[i], steps[i]);
  }
  return {Type::tensor(x.dtype(), dims)};
}

// Where the elements of a slice stand among those of x.
struct Window {
  Extents extents, strides;
  int64_t offset = 0;
};

Window find_window(const Extents& x, const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
                   const std::vector<int64_t>& ends, const std::vector<int64_t>& steps) {
  Window window{x, row_major_strides(x)};
  for (size_t i = 0; i < axes.size(); ++i) {
    if (steps[i] == 0)
      throw user_error("slice: steps[{}] is 0", i);
    const auto axis = static_cast<size_t>(checked_axis("slice", axes[i], static_cast<int64_t>(x.size())));
    const Range range = clamp_range(x[axis], starts[i], ends[i], steps[i]);
    window.offset += range.start * window.strides[axis];
    window.extents[axis] = range.count;
    window.strides[axis] *= range.count < 2 ? 0 : steps[i];
  }
  return window;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<int64_t> axes = c.attr("axes").as<Attribute::Ints>();
  checked_axes("slice", axes, x.rank());
  const auto starts = read_vector(c, "starts", axes.size()), ends = read_vector(c, "ends", axes.size());
  const auto steps =
      c.has("steps") ? read_vector(c, "steps", axes.size()) : std::vector<int64_t>(axes.size(), 1);
  const Window window = find_window(x.extents(), axes, starts, ends, steps);
  return {gather_strided(x, window.extents, window.strides, window.offset)};
}

std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const auto extents = n.in("x").shape().extents();
  const auto starts = n.in("starts").known_ints(), ends = n.in("ends").known_ints();
  if (n.is_late("axes") || !dims || !extents || !starts || !ends)
    return std::nullopt;
  const auto steps = n.has("steps") ? n.in("steps").known_ints() : std::vector<int64_t>(starts->size(), 1);
  if (!steps)
    return std::nullopt;
  const Window window = find_window(*extents, n.attr("axes"), *starts, *ends, *steps);
  return gather_strided(*dims, window.extents, window.strides, window.offset);
}

// How many elements of x a slice in steps of 1 leaves out before and after, along one axis.
std::pair<Value, Value> left_out(Value x, Value y, int64_t axis, int64_t start) {
  const Value size = size_along(x, axis), none = int_vector(x.graph(), {0});
  const Value wanted = int_vector(x.graph(), {start});
  const Value before = start < 0 ? maximum(size + wanted, none) : minimum(wanted, size);
  return {before, size - before - size_along(y, axis)};
}

std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), y = n.out();
  const auto starts = n.in("starts").known_ints();
  const auto steps = n.has("steps") ? n.in("steps").known_ints() : std::vector<int64_t>(1, 1);
  const bool in_ones = steps && std::ranges::all_of(*steps, [](int64_t step) { return step == 1; }) &&
                       starts && !n.node().is_late("axes");
  if (!in_ones)
    return {{"x", add_at_positions(n.dy(), n.repeat({{"x", positions_in(x)}}), x)}};
  const std::vector<int64_t>& axes = n.attr("axes");
  std::vector<Value> before, after;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto [less, more] = left_out(x, y, axes[i], (*starts)[i]);
    before.push_back(less);
    after.push_back(more);
  }
  before.insert(before.end(), after.begin(), after.end());
  return {{"x", axes.empty() ? n.dy() : pad(n.dy(), concat(before, 0), axes)}};
}

// The first element along an axis: clamped, where that may matter.
std::optional<Dim> first_of(const Dim& n, const Dim& start, bool forward) {
  const std::optional<Dim> place = from_front(start, n);
  if (!place)
    return std::nullopt;
  const Dim last = forward ? n : n - 1;
  if (place->is_constant() && last.is_constant())
    return std::clamp<int64_t>(*place->constant(), 0, std::max<int64_t>(*last.constant(), 0));
  return max(min(*place, last), 0);
}

void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value x = n.in("x");
  const std::vector<int64_t>& axes = n.attr("axes");
  const auto starts = vector_dims(n, "starts", axes.size());
  const auto steps = n.has("steps") ? vector_dims(n, "steps", axes.size()) : std::vector<Dim>(axes.size(), 1);
  std::map<size_t, std::pair<Dim, int64_t>> moved;  // by axis: the first element, and the step
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = checked_axis("slice", axes[i], x.rank());
    if (!steps[i].is_constant() || starts[i].is_unknown())
      return;  // where it starts is dynamic
    const std::optional<Dim> first = first_of(x.dim(axis), starts[i], *steps[i].constant() > 0);
    if (!first)
      return;
    moved.emplace(axis, std::pair(*first, *steps[i].constant()));
  }
  c.define([&](const Index& at) {
    Index from = at;
    for (const auto& [axis, move] : moved)
      from[axis] = Scalar::index(move.first) + at[axis] * static_cast<double>(move.second);
    return c.stored(x, from);
  });
}

}  // namespace slice_op

// --- concat ---

namespace concat_op {

Types infer(const Node& n) {
  const std::vector<Value> parts = n.ins("x");
  const auto ranked =
      std::find_if(parts.begin(), parts.end(), [](Value part) { return part.shape().ranked(); });
  if (parts.empty())
    throw user_error("concat: there is nothing to put together");
  if (ranked == parts.end())
    return {Type::tensor(parts.front().dtype(), Shape::unranked())};
  const int64_t axis = checked_axis("concat", n.attr("axis"), ranked->rank());
  std::vector<Dim> dims = ranked->shape().dims();
  dims[static_cast<size_t>(axis)] = 0;
  for (Value part : parts) {
    if (!part.shape().ranked()) {
      dims[static_cast<size_t>(axis)] = Dim();
      continue;
    }
    if (part.rank() != ranked->rank())
      throw operand_error(n, "the ranks differ");
    for (int64_t i = 0; i < part.rank(); ++i) {
      Dim& dim = dims[static_cast<size_t>(i)];
      if (i == axis)
        dim = dim + part.dim(i);
      else if (provably_different(part.dim(i), dim))
        throw operand_error(n, fmt::format("the sizes of dimension {} differ", i));
      else if (part.dim(i).is_constant())  // then the others are this, too
        dim = part.dim(i);
    }
  }
  return {Type::tensor(parts.front().dtype(), dims)};
}

Data eval(const Call& c) { return {concatenate("concat", c.tensors("x"), c.attr("axis"))}; }

// Parts above each other follow one another. An element of which nothing is known does not hide the others.
std::optional<std::vector<Dim>> content(const Node& n) {
  if (checked_axis("concat", n.attr("axis"), n.result().rank()) != 0)
    return std::nullopt;
  std::vector<Dim> together;
  for (Value part : n.ins("x")) {
    const auto extents = part.shape().extents();
    if (!extents)
      return std::nullopt;
    const auto dims =
        part.known_dims().value_or(std::vector<Dim>(static_cast<size_t>(element_count(*extents))));
    together.insert(together.end(), dims.begin(), dims.end());
  }
  const bool any =
      std::any_of(together.begin(), together.end(), [](const Dim& d) { return !d.is_unknown(); });
  return any ? std::optional(together) : std::nullopt;
}

std::vector<Operand> grad(const GradContext& n) {
  const int64_t axis = n.attr("axis");
  std::vector<Value> sizes;
  for (Value part : n.ins("x"))
    sizes.push_back(size_along(part, axis));
  return {{"x", split(n.dy(), concat(sizes, 0), axis)}};
}

void lower(LowerContext& c) {
  const std::vector<Value> parts = c.node().ins("x");
  const auto axis =
      static_cast<size_t>(checked_axis("concat", c.node().attr("axis"), c.node().result().rank()));
  c.define([&](const Index& at) {
    std::vector<Dim> begins{0};
    for (Value part : parts)
      begins.push_back(begins.back() + part.dim(static_cast<int64_t>(axis)));
    const auto element = [&](size_t part) {
      Index from = at;
      from[axis] = at[axis] - Scalar::index(begins[part]);
      Scalar stored = c.stored(parts[part], from);
      for (int64_t i = 0; i < parts[part].rank(); ++i)
        if (i != static_cast<int64_t>(axis))
          stored = LowerContext::require_equal(parts[part].dim(i), c.node().result().dim(i), stored);
      return stored;
    };
    Scalar y = element(parts.size() - 1);
    for (size_t part = parts.size() - 1; part-- > 0;)
      y = select(less(at[axis], Scalar::index(begins[part + 1])), element(part), y);
    return y;
  });
}

}  // namespace concat_op

// --- split ---

namespace split_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const auto count = known_length(n, "sizes");
  if (!count)
    throw unsupported("split: the number of parts must be known before the graph runs");
  if (!x.shape().ranked())
    return Types(static_cast<size_t>(*count), x.type());
  const int64_t axis = checked_axis("split", n.attr("axis"), x.rank());
  Dim total = 0;
  Types types;
  const std::vector<Dim> sizes = vector_dims(n, "sizes", static_cast<size_t>(*count));
  check_sizes(n, "sizes", sizes);
  for (const Dim& size : sizes) {
    total = total + size;
    std::vector<Dim> dims = x.shape().dims();
    dims[static_cast<size_t>(axis)] = size;
    types.push_back(Type::tensor(x.dtype(), dims));
  }
  if (provably_different(total, x.dim(axis)))
    throw operand_error(
        n, fmt::format("dimension {} is {}, but the parts add up to {}", axis, x.dim(axis), total));
  return types;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t axis = checked_axis("split", c.attr("axis"), x.rank());
  const Extents strides = row_major_strides(x.extents());
  const int64_t stride = strides[static_cast<size_t>(axis)];
  Data parts;
  int64_t start = 0;
  for (const int64_t size : read_vector(c, "sizes", static_cast<size_t>(c.node().result_count()))) {
    if (size < 0 || size > x.extent(axis) - start)
      throw user_error("split: the parts [{}] do not add up to dimension {} of [{}]",
                       fmt::join(as_ints(c.in("sizes")), ","), axis, fmt::join(x.extents(), ","));
    Extents extents = x.extents();
    extents[static_cast<size_t>(axis)] = size;
    parts.emplace_back(gather_strided(x, extents, strides, start * stride));
    start += size;
  }
  if (start != x.extent(axis))
    throw user_error("split: the parts [{}] do not add up to dimension {} of [{}]",
                     fmt::join(as_ints(c.in("sizes")), ","), axis, fmt::join(x.extents(), ","));
  return parts;
}

std::vector<Operand> grad(const GradContext& n) {
  std::vector<Value> parts;
  for (int64_t i = 0; i < n.node().result_count(); ++i)
    parts.push_back(n.dy_or_zeros(i));
  return {{"x", concat(parts, n.attr("axis"))}};
}

void lower(LowerContext& c) {
  const Value x = c.node().in("x");
  const auto axis = static_cast<size_t>(checked_axis("split", c.node().attr("axis"), x.rank()));
  Dim begin = 0, whole = 0;
  for (Value part : c.node().results())
    whole = whole + part.dim(static_cast<int64_t>(axis));
  for (int64_t part = 0; part < c.node().result_count(); ++part) {
    c.define(part, [&](const Index& at) {
      Index from = at;
      from[axis] = at[axis] + Scalar::index(begin);
      return LowerContext::require_equal(whole, x.dim(static_cast<int64_t>(axis)), c.stored(x, from));
    });
    begin = begin + c.node().result(part).dim(static_cast<int64_t>(axis));
  }
}

}  // namespace split_op

}  // namespace

const Family& slice_ops() {
  static const Family ops = {
      {.name = "slice",
       .doc = "along some axes, the elements from a start to before an end, in steps; all are clamped",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"starts", "i64"}, {"ends", "i64"}, {"steps", "i64", Arity::Optional}},
       .attributes = {{"axes", AttributeKind::Ints, "the axis of each start, end and step", std::nullopt,
                       Binding::Late}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = slice_op::infer,
       .content = slice_op::content,
       .eval = slice_op::eval,
       .lower = slice_op::lower,
       .grad = slice_op::grad},
      {.name = "concat",
       .doc = "tensors put one after the other along an axis",
       .category = Category::Shape,
       .operands = {{"x", "T", Arity::Many}},
       .attributes = {{"axis", AttributeKind::Int, "the axis along which they stand"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = concat_op::infer,
       .content = concat_op::content,
       .eval = concat_op::eval,
       .lower = concat_op::lower,
       .grad = concat_op::grad},
      {.name = "split",
       .doc = "x cut along an axis into parts of the given sizes",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"sizes", "i64"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis that is cut"}},
       .results = {{"y", "T", Arity::Many}},
       .traits = {.takes_unranked = true},
       .infer = split_op::infer,
       .eval = split_op::eval,
       .lower = split_op::lower,
       .grad = split_op::grad},
  };
  return ops;
}

Value slice(Value x, Value starts, Value ends, const std::vector<int64_t>& axes, Value steps) {
  return x.graph()
      .create("slice", {{"x", x}, {"starts", starts}, {"ends", ends}, {"steps", steps}}, {{"axes", axes}})
      ->result();
}
Value slice(Value x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  Graph& graph = x.graph();
  return slice(x, int_vector(graph, {start}), int_vector(graph, {end}), {axis},
               step == 1 ? Value() : int_vector(graph, {step}));
}
Value concat(const std::vector<Value>& parts, int64_t axis) {
  return parts.at(0).graph().create("concat", {{"x", parts}}, {{"axis", axis}})->result();
}
std::vector<Value> split(Value x, Value sizes, int64_t axis) {
  return x.graph().create("split", {{"x", x}, {"sizes", sizes}}, {{"axis", axis}})->results();
}
std::vector<Value> split(Value x, const std::vector<int64_t>& sizes, int64_t axis) {
  return split(x, int_vector(x.graph(), sizes), axis);
}
Value size_along(Value x, int64_t axis) {
  if (x.shape().ranked())
    if (const auto size = x.dim(checked_axis("shape", axis, x.rank())).constant())
      return int_vector(x.graph(), {*size});
  return slice(shape_of(x), 0, axis, axis == -1 ? kToTheEnd : axis + 1);
}

}  // namespace tenon
