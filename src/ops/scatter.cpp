#include "ops/scatter.h"

#include "ir/size_condition.h"
#include "ops/arithmetic.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/indices.h"
#include "ops/lower.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/words.h"

namespace tenon {
namespace {

// --- what both ops that take indices share ---

template <class T>
using Combine = T (*)(T, T);

// How an update is combined with the element it meets; the last of several takes its place.
template <class T>
Combine<T> combine_of(const Node& n) {
  return named<Combine<T>>(n, "reduction",
                           {{"none", [](T, T update) { return update; }},
                            {"add", sum_of},
                            {"mul", product_of},
                            {"max", greater_of},
                            {"min", lesser_of}});
}

void check_reduction(const Node& n) {
  combine_of<double>(n);
  const DType dtype = n.in("x").dtype();
  if (n.attr("reduction").as<std::string>() != "none" && !NumbersAndBool.contains(dtype))
    throw operand_error(n, fmt::format("{} elements cannot be reduced", dtype));
}

bool all_ranked(const Node& n) {
  return std::ranges::all_of(n.operands(), [](Value value) { return value.shape().ranked(); });
}

void check_updates(const Node& n, const Shape& places) {
  if (!places.ranked())
    return;
  const Shape& updates = n.in("updates").shape();
  bool fits = updates.rank() == places.rank();
  for (int64_t i = 0; fits && i < places.rank(); ++i)
    fits = !provably_different(updates[i], places[i]);
  if (!fits)
    throw operand_error(n, fmt::format("updates must be of shape {}", places));
}

Tensor replace(const Tensor& x, const Tensor& updates, const Places& places) {
  Tensor y(x.dtype(), x.extents());
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<T> to = mutable_stored<T>(y);
    std::ranges::copy(stored<T>(x), to.begin());
    auto update = stored<T>(updates).begin();
    for (int64_t offset : places.offsets) {
      std::copy_n(update, places.run, to.begin() + offset);
      update += places.run;
    }
  });
  return y;
}

Tensor write(const Call& c, const Places& places) {
  const Tensor &x = c.in("x"), &updates = c.in("updates");
  if (updates.extents() != places.extents)
    throw user_error(
        "{}: updates of shape [{}] do not fit where indices of shape [{}] point in x of shape [{}]",
        c.node().op().name, fmt::join(updates.extents(), ","), fmt::join(c.in("indices").extents(), ","),
        fmt::join(x.extents(), ","));
  if (c.attr("reduction").as<std::string>() == "none")
    return replace(x, updates, places);
  return with_wide(x.dtype(), [&]<class T>(T) {
    const Combine<T> combine = combine_of<T>(c.node());
    std::vector<T> values = widen<T>(x);
    const std::vector<T> others = widen<T>(updates);
    auto other = others.begin();
    for (int64_t offset : places.offsets)
      for (int64_t i = 0; i < places.run; ++i) {
        T& value = values[static_cast<size_t>(offset + i)];
        value = combine(value, *other++);
      }
    return narrow<T>(x.dtype(), x.extents(), values);
  });
}

// Updates that replace dimension expressions are such expressions themselves.
std::optional<std::vector<Dim>> replaced_dims(const Node& n, FindPlaces find, int64_t parameter) {
  const auto places = known_places(n, find, parameter);
  auto dims = n.in("x").known_dims();
  const auto updates = n.in("updates").known_dims();
  if (!places || !dims || !updates || n.attr("reduction").as<std::string>() != "none" ||
      std::ssize(*updates) != std::ssize(places->offsets) * places->run)
    return std::nullopt;
  auto update = updates->begin();
  for (int64_t offset : places->offsets)
    for (int64_t i = 0; i < places->run; ++i)
      (*dims)[static_cast<size_t>(offset + i)] = *update++;
  return dims;
}

// --- scatter_elements and scatter_nd ---

Types infer_elements(const Node& n) {
  check_reduction(n);
  if (all_ranked(n))
    check_updates(n, shape_of_elements(n, n.attr("axis")));
  return same_as_x(n);
}

std::optional<std::vector<Dim>> content_of_elements(const Node& n) {
  return replaced_dims(n, places_of_elements, n.attr("axis"));
}

Data eval_elements(const Call& c) {
  return {
      write(c, places_of_elements("scatter_elements", c.in("x").extents(), c.in("indices"), c.attr("axis")))};
}

Types infer_nd(const Node& n) {
  check_reduction(n);
  if (all_ranked(n))
    check_updates(n, shape_of_tuples(n, 0));
  return same_as_x(n);
}

std::optional<std::vector<Dim>> content_nd(const Node& n) { return replaced_dims(n, places_of_tuples, 0); }

Data eval_nd(const Call& c) {
  return {write(c, places_of_tuples("scatter_nd", c.in("x").extents(), c.in("indices"), 0))};
}

// --- write_along ---

namespace write_along {

Types infer(const Node& n) {
  const Value x = n.in("x"), updates = n.in("updates"), starts = n.in("starts");
  if (!all_ranked(n))
    return same_as_x(n);
  const int64_t axis = checked_axis("write_along", n.attr("axis"), x.rank());
  if (axis == 0)
    throw operand_error(n, "axis 0 is the batch, which cannot be written along");
  bool fits = updates.rank() == x.rank();
  if (fits)
    assume_at_most(updates.dim(axis), x.dim(axis));
  for (int64_t i = 0; fits && i < x.rank(); ++i)
    fits = i == axis ? (x.dim(i) - updates.dim(i)).constant().value_or(0) >= 0
                     : !provably_different(x.dim(i), updates.dim(i));
  if (!fits)
    throw operand_error(n, fmt::format("updates must have the shape of x, and no more along axis {}", axis));
  if (starts && (starts.rank() != 1 || provably_different(starts.dim(0), x.dim(0))))
    throw operand_error(n, fmt::format("starts must be of shape [{}]", x.dim(0)));
  return same_as_x(n);
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &updates = c.in("updates");
  const int64_t axis = checked_axis("write_along", c.attr("axis"), x.rank());
  const auto split = static_cast<size_t>(axis);
  Extents fitting = x.extents();
  if (updates.rank() == x.rank() && updates.extent(axis) <= x.extent(axis))
    fitting[split] = updates.extent(axis);
  if (axis == 0 || updates.extents() != fitting)
    throw user_error("write_along: updates of shape [{}] do not fit along axis {} of x of shape [{}]",
                     fmt::join(updates.extents(), ","), axis, fmt::join(x.extents(), ","));
  const int64_t batch = x.extent(0), size = x.extent(axis), length = updates.extent(axis);
  std::vector<int64_t> starts(static_cast<size_t>(batch), 0);
  if (c.has("starts")) {
    if (c.in("starts").extents() != Extents{batch})
      throw user_error("write_along: starts of shape [{}] for a batch of {}",
                       fmt::join(c.in("starts").extents(), ","), batch);
    starts = as_ints(c.in("starts"));
  }
  if (length == 0)
    return {x};
  for (int64_t& start : starts) {
    if (c.attr("circular"))
      start = (start % size + size) % size;
    else if (start < 0 || start > size - length)
      throw user_error("write_along: {} elements from {} on do not fit into {}", length, start, size);
  }
  if (x.count() == 0)
    return {x};
  const int64_t rows = element_count(Extents(x.extents().begin(), x.extents().begin() + axis));
  Places places = {.extents = updates.extents(),
                   .run = element_count(Extents(x.extents().begin() + axis + 1, x.extents().end()))};
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < length; ++i) {
      const int64_t position = (starts[static_cast<size_t>(row / (rows / batch))] + i) % size;
      places.offsets.push_back((row * size + position) * places.run);
    }
  return {replace(x, updates, places)};
}

}  // namespace write_along

// --- lowering: x is copied, then the updates are written one after the other ---

// How an update is combined with what stands there; false and true are joined as the numbers 0 and 1 are.
std::string combine_name(const Node& n) {
  const bool truths = n.in("x").dtype() == DType::Bool;
  return named<const char*>(n, "reduction",
                            {{"none", ""},
                             {"add", truths ? "or" : "+"},
                             {"mul", truths ? "and" : "*"},
                             {"max", truths ? "or" : "max"},
                             {"min", truths ? "and" : "min"}});
}

loops::Assign assign(const std::string& buffer, const Index& at, const std::string& combine,
                     const Scalar& value) {
  return {.places = {{buffer, at}}, .combine = combine, .values = {value}};
}

// to[…] = value, for every element.
std::vector<loops::Statement> fill_all(const std::string& to, const std::vector<Dim>& sizes, loops::Mark mark,
                                       const std::function<Scalar(const Index&)>& value) {
  std::vector<loops::Axis> outer = LowerContext::axes(sizes, to + "_"), inner;
  const Index at = loops::variables_of(outer);
  if (!outer.empty()) {
    inner.push_back(outer.back());
    outer.pop_back();
  }
  return LowerContext::around(
      outer, mark, LowerContext::around(inner, loops::Mark::Vector, {assign(to, at, "", value(at))}));
}

// `updates` are the loops that write, given where and by which dtype they do. Narrow floats are joined as
// wide ones, and rounded once: in memory of their own, by one thread.
void write_updates(
    LowerContext& c,
    const std::function<std::vector<loops::Statement>(const std::string& to, DType dtype)>& updates) {
  const Value x = c.node().in("x");
  const std::vector<Dim>& sizes = x.shape().dims();
  const std::string combine = combine_name(c.node()), result = LowerContext::result_name(0);
  const auto add = [](std::vector<loops::Statement>& body, std::vector<loops::Statement> more) {
    body.insert(body.end(), more.begin(), more.end());
  };
  const DType dtype = combine.empty() ? x.dtype() : wide_dtype(x.dtype());
  std::vector<loops::Statement> body;
  if (dtype == x.dtype()) {
    add(body,
        fill_all(result, sizes, loops::Mark::Parallel, [&](const Index& at) { return c.stored(x, at); }));
    add(body, updates(result, dtype));
  } else {
    body.emplace_back(loops::Local{{.name = "wide", .dtype = dtype, .sizes = sizes}});
    add(body, fill_all("wide", sizes, loops::Mark::Serial, [&](const Index& at) { return c.in(x, at); }));
    add(body, updates("wide", dtype));
    add(body, fill_all(result, sizes, loops::Mark::Serial, [&](const Index& at) {
          return Scalar::cast(x.dtype(), Scalar::load("wide", dtype, at));
        }));
  }
  c.nest(std::move(body));
}

// Updates that differ in more than the place along the axis never meet, so that those may come at once.
void lower_elements(LowerContext& c) {
  const Value x = c.node().in("x"), indices = c.node().in("indices"), updates = c.node().in("updates");
  const int64_t axis = checked_axis("scatter_elements", c.node().attr("axis"), x.rank());
  if (updates.shape() != indices.shape())
    return;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && (x.dim(i) - indices.dim(i)).lower_bound().value_or(-1) < 0)
      return;
  write_updates(c, [&](const std::string& to, DType dtype) {
    std::vector<loops::Axis> others = LowerContext::axes(indices.shape().dims(), "u");
    const Index at = loops::variables_of(others);
    const std::vector<loops::Axis> along = {others[static_cast<size_t>(axis)]};
    others.erase(others.begin() + axis);
    Index place = at;
    place[static_cast<size_t>(axis)] = c.position(c.stored(indices, at), x.dim(axis));
    const Scalar update = Scalar::cast(dtype, c.stored(updates, at));
    const auto mark = dtype == x.dtype() ? loops::Mark::Parallel : loops::Mark::Serial;
    return LowerContext::around(others, mark,
                                LowerContext::around(along, loops::Mark::Serial,
                                                     {assign(to, place, combine_name(c.node()), update)}));
  });
}

void lower_nd(LowerContext& c) {
  const Value x = c.node().in("x"), indices = c.node().in("indices"), updates = c.node().in("updates");
  const std::optional<int64_t> length = indices.dim(-1).constant();
  if (!length || updates.shape() != shape_of_tuples(c.node(), 0))
    return;
  write_updates(c, [&](const std::string& to, DType dtype) {
    const std::vector<loops::Axis> axes = LowerContext::axes(updates.shape().dims(), "u");
    const Index at = loops::variables_of(axes);
    const auto tuples = at.begin() + indices.rank() - 1;
    Index place;
    for (int64_t i = 0; i < *length; ++i) {
      Index tuple(at.begin(), tuples);
      tuple.push_back(Scalar::index(i));
      place.push_back(c.position(c.stored(indices, tuple), x.dim(i)));
    }
    place.insert(place.end(), tuples, at.end());
    const Scalar update = Scalar::cast(dtype, c.stored(updates, at));
    return LowerContext::around(axes, loops::Mark::Serial,
                                {assign(to, place, combine_name(c.node()), update)});
  });
}

// Each element asks whether an update was written to it.
void lower_write_along(LowerContext& c) {
  const Value x = c.node().in("x"), updates = c.node().in("updates"), starts = c.node().in("starts");
  const int64_t axis = checked_axis("write_along", c.node().attr("axis"), x.rank());
  const bool circular = c.node().attr("circular");
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && x.dim(i) != updates.dim(i))
      return;
  if (starts && starts.dim(0) != x.dim(0))
    return;
  const Scalar zero = Scalar::zero(DType::I64), size = Scalar::index(x.dim(axis)),
               length = Scalar::index(updates.dim(axis));
  c.define([&](const Index& at) {
    const Scalar given = starts ? c.stored(starts, {at[0]}) : zero, along = at[static_cast<size_t>(axis)];
    Scalar start = given;
    if (circular) {
      const Scalar rest = Scalar::apply(loops::Function::Remainder, {given, size});
      start = select(less(rest, zero), rest + size, rest);
    }
    const Scalar fits = less_equal(length, size) && less_equal(zero, start) &&
                        (circular ? less(start, size) : less_equal(start, size - length));
    // No updates fit everywhere.
    const Scalar distance = along - require(fits || equal(length, zero), start);
    Index from = at;
    from[static_cast<size_t>(axis)] =
        circular ? select(less(distance, zero), distance + size, distance) : distance;
    const Scalar& place = from[static_cast<size_t>(axis)];
    return select(less_equal(zero, place) && less(place, length), c.stored(updates, from), c.stored(x, at));
  });
}

// --- gradients ---

// How scatter_elements or scatter_nd writes other updates to another x, and reads what is there.
struct Writing {
  const GradContext& n;
  Value indices = n.in("indices");

  Value write(Value x, Value updates, std::string_view reduction) const {
    return n.node().is("scatter_nd") ? scatter_nd(x, indices, updates, reduction)
                                     : scatter_elements(x, indices, updates, n.attr("axis"), reduction);
  }
  Value read(Value x) const {
    return n.node().is("scatter_nd") ? gather_nd(x, indices) : gather_elements(x, indices, n.attr("axis"));
  }
  Value add_up(Value updates, Value x) const { return write(zeros_like(x), updates, "add"); }
};

// Of several updates of one place the last stays: the one whose number is found there afterwards.
std::vector<Operand> grad_replace(const Writing& w) {
  const Value x = w.n.in("x"), updates = w.n.in("updates"), dy = w.n.dy();
  const Value numbers = positions_in(updates);
  const Value winners = w.write(cast(zeros_like(x), DType::I64), numbers, "none");
  return {{"x", w.write(dy, zeros_like(updates), "none")},
          {"updates", keep_where(equal(w.read(winners), numbers), w.read(dy))}};
}

// For each factor the product of the others. By division, but for zeros: beside one zero, it is the product
// of what is not zero; beside two, it is 0.
std::vector<Operand> grad_multiply(const Writing& w) {
  const Value x = w.n.in("x"), updates = w.n.in("updates"), dy = w.n.dy();
  const Value nothing = scalar(w.n.graph(), x.dtype(), 0), one = nothing + 1.0;
  const Value is_zero = equal(updates, nothing), factors = where(is_zero, one, updates);
  const Value zeros = w.add_up(cast(is_zero, x.dtype()), x);
  const Value product = w.write(x, factors, "mul");
  const Value others =
      keep_where(equal(w.read(zeros) - cast(is_zero, x.dtype()), nothing), w.read(product) / factors);
  return {{"x", dy * w.write(ones_like(x), updates, "mul")}, {"updates", w.read(dy) * others}};
}

// Equal ones share it evenly.
std::vector<Operand> grad_extreme(const Writing& w) {
  const Value x = w.n.in("x"), updates = w.n.in("updates"), y = w.n.out();
  const Value x_chosen = cast(equal(x, y), x.dtype()),
              update_chosen = cast(equal(updates, w.read(y)), x.dtype());
  const Value share = w.n.dy() / w.write(x_chosen, update_chosen, "add");
  return {{"x", x_chosen * share}, {"updates", update_chosen * w.read(share)}};
}

std::vector<Operand> grad_sum(const Writing& w) { return {{"x", w.n.dy()}, {"updates", w.read(w.n.dy())}}; }

std::vector<Operand> grad(const GradContext& n) {
  using Formula = std::vector<Operand> (*)(const Writing&);
  return named<Formula>(n.node(), "reduction",
                        {{"none", grad_replace},
                         {"add", grad_sum},
                         {"mul", grad_multiply},
                         {"max", grad_extreme},
                         {"min", grad_extreme}})(Writing{n});
}

// Where along the axis each update of write_along stands.
Value written_positions(const GradContext& n) {
  const Value x = n.in("x"), updates = n.in("updates"), starts = n.in("starts");
  const int64_t axis = checked_axis("write_along", n.attr("axis"), x.rank());
  std::vector<int64_t> along(static_cast<size_t>(x.rank()), 1), along_batch = along;
  along[static_cast<size_t>(axis)] = -1;
  along_batch.front() = -1;
  const auto number = [&](int64_t value) { return constant(n.graph(), Tensor::scalar(value)); };
  Value positions = reshape(range(number(0), squeeze(size_along(updates, axis), {0}), number(1)), along);
  if (starts)
    positions = positions + reshape(starts, along_batch);
  if (n.attr("circular"))
    positions = mod(positions, size_along(x, axis));
  return broadcast_to(positions, shape_of(updates));
}

std::vector<Operand> grad_write_along(const GradContext& n) {
  const Value updates = n.in("updates"), dy = n.dy();
  const Value dx = n.repeat({{"x", dy}, {"updates", zeros_like(updates)}});
  return {{"x", dx}, {"updates", gather_elements(dy, written_positions(n), n.attr("axis"))}};
}

const AttributeDecl reduction = {"reduction", AttributeKind::String,
                                 "how an update is combined with what stands there: none (it replaces it; of "
                                 "several, the last), add, mul, "
                                 "max or min",
                                 "none"};

}  // namespace

const Family& scatter_ops() {
  static const Family ops = {
      {.name = "scatter_elements",
       .doc = "x, but every update stands at its own place, at its index along the axis",
       .operands = {{"x", "T"}, {"indices", "I"}, {"updates", "T"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis along which indices count", 0}, reduction},
       .results = {{"y", "T"}},
       .types = {{"I", {DType::I64, DType::I32}}},
       .traits = {.takes_unranked = true},
       .infer = infer_elements,
       .content = content_of_elements,
       .eval = eval_elements,
       .lower = lower_elements,
       .grad = grad},
      {.name = "scatter_nd",
       .doc = "x, but updates stand where the tuples in the last dimension of indices point",
       .operands = {{"x", "T"}, {"indices", "I"}, {"updates", "T"}},
       .attributes = {reduction},
       .results = {{"y", "T"}},
       .types = {{"I", {DType::I64, DType::I32}}},
       .traits = {.takes_unranked = true},
       .infer = infer_nd,
       .content = content_nd,
       .eval = eval_nd,
       .lower = lower_nd,
       .grad = grad},
      {.name = "write_along",
       .doc = "x, but along an axis updates are written from starts on, one for each element of the batch",
       .operands = {{"x", "T"}, {"updates", "T"}, {"starts", "i64", Arity::Optional}},
       .attributes = {{"axis", AttributeKind::Int, "the axis that is written along; not 0, the batch", -2},
                      {"circular", AttributeKind::Bool, "whether what reaches beyond the end wraps around",
                       false}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = write_along::infer,
       .eval = write_along::eval,
       .lower = lower_write_along,
       .grad = grad_write_along},
  };
  return ops;
}

Value scatter_elements(Value x, Value indices, Value updates, int64_t axis, std::string_view reduction) {
  return x.graph()
      .create("scatter_elements", {{"x", x}, {"indices", indices}, {"updates", updates}},
              {{"axis", axis}, {"reduction", reduction}})
      ->result();
}
Value scatter_nd(Value x, Value indices, Value updates, std::string_view reduction) {
  return x.graph()
      .create("scatter_nd", {{"x", x}, {"indices", indices}, {"updates", updates}},
              {{"reduction", reduction}})
      ->result();
}

}  // namespace tenon
