#include "ops/pad.h"

#include <algorithm>

#include "ir/size_condition.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "ops/words.h"

namespace tenon {
namespace {

// x with the positions sources[0], sources[1], … along one axis; where one is negative, `otherwise`.
Tensor take_along(const Tensor& x, int64_t axis, std::span<const int64_t> sources,
                  const Tensor* otherwise = nullptr) {
  Extents extents = x.extents();
  extents[static_cast<size_t>(axis)] = static_cast<int64_t>(sources.size());
  Tensor y(x.dtype(), extents);
  if (y.count() == 0)
    return y;
  const int64_t inner = row_major_strides(extents)[static_cast<size_t>(axis)];
  const int64_t outer = y.count() / (inner * static_cast<int64_t>(sources.size()));
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    auto to = mutable_stored<T>(y).begin();
    for (int64_t i = 0; i < outer; ++i)
      for (const int64_t source : sources)
        to = source < 0 ? std::fill_n(to, inner, stored<T>(*otherwise).front())
                        : std::copy_n(from.begin() + (i * x.extent(axis) + source) * inner, inner, to);
  });
  return y;
}

// --- pad ---

namespace pad_op {

enum class Mode : uint8_t { Constant, Edge, Reflect, Wrap };

Mode mode_of(const Node& n) {
  return named<Mode>(
      n, "mode",
      {{"constant", Mode::Constant}, {"edge", Mode::Edge}, {"reflect", Mode::Reflect}, {"wrap", Mode::Wrap}});
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  mode_of(n);
  if (!x.shape().ranked())
    return {x.type()};
  if (n.is_late("axes"))
    return {Type::tensor(x.dtype(), Shape::unknown(x.rank()))};
  const std::vector<int64_t>& axes = n.attr("axes");
  checked_axes("pad", axes, x.rank());
  const std::vector<Dim> pads = vector_dims(n, "pads", 2 * axes.size());
  std::vector<Dim> dims = x.shape().dims();
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = checked_axis("pad", axes[i], x.rank());
    Dim& dim = dims[static_cast<size_t>(axis)];
    dim = dim + pads[i] + pads[i + axes.size()];
    assume_at_most(0, dim);
    if (dim.is_constant() && *dim.constant() < 0)
      throw operand_error(n, fmt::format("pads {} and {} cut more off dimension {} than there is", pads[i],
                                         pads[i + axes.size()], axis));
  }
  return {Type::tensor(x.dtype(), dims)};
}

// Which of n elements stands at `position`, which may lie outside.
int64_t source_of(Mode mode, int64_t position, int64_t n) {
  if (position >= 0 && position < n)
    return position;
  if (mode == Mode::Constant)
    return -1;
  if (mode == Mode::Edge)
    return position < 0 ? 0 : n - 1;
  const auto modulo = [](int64_t a, int64_t b) { return (a % b + b) % b; };
  if (mode == Mode::Wrap)
    return modulo(position, n);
  if (n == 1)
    return 0;
  // There and back again, without repeating the ends.
  const int64_t folded = modulo(position, 2 * n - 2);
  return folded < n ? folded : 2 * n - 2 - folded;
}

int64_t checked_sum(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum))
    throw user_error("pad: pads of {} overflow the size of a dimension", b);
  return sum;
}

// What happens to one axis: first `cut_before` elements go, so that `cut` are left, then as many come that
// there are `padded`, `added_before` of them before the others.
struct Change {
  int64_t axis, cut_before, cut, added_before, padded;
};

std::vector<Change> read_changes(const Call& c) {
  const Tensor& x = c.in("x");
  const Mode mode = mode_of(c.node());
  const std::vector<int64_t> axes = c.attr("axes").as<Attribute::Ints>();
  checked_axes("pad", axes, x.rank());
  const std::vector<int64_t> pads = read_vector(c, "pads", 2 * axes.size());
  std::vector<Change> changes;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = checked_axis("pad", axes[i], x.rank()), extent = x.extent(axis);
    const int64_t before = pads[i], after = pads[i + axes.size()];
    const int64_t cut =
        checked_sum(checked_sum(extent, std::min<int64_t>(before, 0)), std::min<int64_t>(after, 0));
    if (cut < 0)
      throw user_error("pad: pads {} and {} cut more off dimension {} than there is, {}", before, after, axis,
                       extent);
    const int64_t added_before = std::max<int64_t>(before, 0);
    const int64_t padded = checked_sum(checked_sum(cut, added_before), std::max<int64_t>(after, 0));
    if (cut == 0 && padded > 0 && mode != Mode::Constant)
      throw user_error("pad: dimension {} has no elements to take for mode {}", axis,
                       c.attr("mode").as<std::string>());
    changes.push_back({axis, -std::min<int64_t>(before, 0), cut, added_before, padded});
  }
  return changes;
}

// First what is cut off, then what is added: the values that are added come from what is left.
Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<Change> changes = read_changes(c);
  const Tensor zero(x.dtype(), {});
  const Tensor& value = c.has("value") ? c.in("value") : zero;
  if (value.count() != 1)
    throw user_error("pad: value must be one element, but is {}", type_of(value));
  Extents cut = x.extents(), padded = cut;
  const Extents strides = row_major_strides(cut);
  int64_t offset = 0;
  for (const Change& change : changes) {
    const auto axis = static_cast<size_t>(change.axis);
    cut[axis] = change.cut;
    padded[axis] = change.padded;
    offset += change.cut_before * strides[axis];
  }
  if (element_count(padded) == 0)
    return {Tensor(x.dtype(), padded)};
  const Mode mode = mode_of(c.node());
  Tensor y = gather_strided(x, cut, strides, offset);
  for (const Change& change : changes) {
    std::vector<int64_t> sources = zeros<int64_t>({change.padded});
    for (size_t k = 0; k < sources.size(); ++k)
      sources[k] = source_of(mode, static_cast<int64_t>(k) - change.added_before, change.cut);
    y = take_along(y, change.axis, sources, &value);
  }
  return {y};
}

// Which element of x stands at an index along one axis, and whether there is one: nothing where there always
// is.
struct PaddedSource {
  Scalar at;
  std::optional<Scalar> inside;
};

PaddedSource lowered_source(Mode mode, const Dim& at, const Dim& size, const Dim& before, const Dim& after) {
  const Dim cut_before = max(-1 * before, 0), cut = size + min(before, 0) + min(after, 0);
  const Dim position = at - max(before, 0);
  // What cuts more off than there is, or adds where nothing is left, is refused.
  const int64_t least = mode == Mode::Constant ? 0 : 1;
  const auto checked = [&](const Scalar& value) {
    const bool sure = cut.lower_bound().value_or(least - 1) >= least;
    return sure ? value : require(less_equal(Scalar::index(least), Scalar::index(cut)), value);
  };
  const auto source = [&](const Dim& among) { return checked(Scalar::index(cut_before + among)); };
  switch (mode) {
    case Mode::Constant:
      return {Scalar::index(cut_before + position),
              checked(loops::within(Scalar::index(position), cut).value())};
    case Mode::Edge:
      return {source(min(max(position, 0), cut - 1)), std::nullopt};
    case Mode::Wrap:
      return {source(mod(position, max(cut, 1))), std::nullopt};
    case Mode::Reflect:
      break;
  }
  // There and back again; one element has nowhere to go.
  const Dim turn = max(2 * cut - 2, 0), folded = mod(position, max(turn, 1));
  return {source(min(folded, turn - folded)), std::nullopt};
}

void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value x = n.in("x"), value = n.in("value");
  const Mode mode = mode_of(n);
  const std::vector<int64_t>& axes = n.attr("axes");
  const std::vector<Dim> pads = vector_dims(n, "pads", 2 * axes.size());
  if (std::ranges::any_of(pads, &Dim::is_unknown) || (value && value.shape().element_count() != Dim(1)))
    return;
  c.define([&](const Index& at) {
    Index from = at;
    std::optional<Scalar> inside;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t axis = checked_axis("pad", axes[i], x.rank());
      Scalar& index = from[static_cast<size_t>(axis)];
      if (pads[i] == Dim(0) && pads[i + axes.size()] == Dim(0))
        continue;
      const PaddedSource source =
          lowered_source(mode, index.index(), x.dim(axis), pads[i], pads[i + axes.size()]);
      index = source.at;
      if (source.inside)
        inside = inside ? *inside && *source.inside : *source.inside;
    }
    const Scalar element = c.stored(x, from);
    if (!inside)
      return element;
    const Scalar added = value ? c.stored(value, Index(static_cast<size_t>(value.rank()), Scalar::index(0)))
                               : Scalar::zero(x.dtype());
    return select(*inside, element, added);
  });
}

// What is added is cut off again, and what was cut off comes back as zeros. In the other modes an element
// gets the gradients of all its copies.
std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), dy = n.dy();
  if (mode_of(n.node()) != Mode::Constant)
    return {{"x", add_at_positions(dy, n.repeat({{"x", positions_in(x)}}), x)}};
  const Value nothing = scalar(n.graph(), x.dtype(), 0);
  const Value dx = n.repeat({{"x", dy}, {"pads", -n.in("pads")}, {"value", nothing}});
  if (!n.wants("value"))
    return {{"x", dx}};
  const Value added = n.repeat({{"x", zeros_like(x)}, {"value", nothing + 1.0}});
  Axes all(static_cast<size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  return {{"x", dx}, {"value", reshape(reduce_sum(dy * added, all), shape_of(n.in("value")))}};
}

}  // namespace pad_op

// --- tile ---

namespace tile_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (!x.shape().ranked()) {
    const auto rank = known_length(n, "repeats");
    return {Type::tensor(x.dtype(), rank ? Shape::unknown(*rank) : Shape::unranked())};
  }
  const auto rank = static_cast<size_t>(x.rank());
  const std::vector<Dim> times = vector_dims(n, "repeats", rank);
  check_sizes(n, "repeats", times);
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i)
    dims.push_back(x.dim(static_cast<int64_t>(i)) * times[i]);
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  Tensor y = c.in("x");
  const std::vector<int64_t> repeats = read_vector(c, "repeats", y.extents().size());
  Extents extents;
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] < 0)
      throw user_error("tile: repeats[{}] is {}, but must be at least 0", i, repeats[i]);
    extents.push_back(element_count({y.extents()[i], repeats[i]}));
  }
  if (element_count(extents) == 0)
    return {Tensor(y.dtype(), extents)};
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == 1)
      continue;
    std::vector<int64_t> sources = zeros<int64_t>({extents[i]});
    for (size_t k = 0; k < sources.size(); ++k)
      sources[k] = static_cast<int64_t>(k) % y.extents()[i];
    y = take_along(y, static_cast<int64_t>(i), sources);
  }
  return {y};
}

std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const auto repeats = n.in("repeats").known_ints();
  if (!dims || dims->empty() || !repeats || n.in("x").rank() != 1)
    return std::nullopt;
  std::vector<Dim> tiled;
  for (int64_t i = 0; i < repeats->front(); ++i)
    tiled.insert(tiled.end(), dims->begin(), dims->end());
  return tiled;
}

void lower(LowerContext& c) {
  const Value x = c.node().in("x"), y = c.node().result();
  c.define([&](const Index& at) {
    Index from = at;
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      if (y.dim(axis) != x.dim(axis)) {
        Scalar& index = from[static_cast<size_t>(axis)];
        index = Scalar::index(mod(index.index(), x.dim(axis)));
      }
    return c.stored(x, from);
  });
}

// Each axis as two, of the copies and of what is copied: the sum is over the copies.
std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), repeats = n.in("repeats");
  std::vector<Value> sizes;
  Axes copies;
  for (int64_t i = 0; i < x.rank(); ++i) {
    copies.push_back(2 * i);
    sizes.push_back(slice(repeats, 0, i, i + 1));
    sizes.push_back(size_along(x, i));
  }
  return {{"x", x.rank() == 0 ? n.dy() : reduce_sum(reshape(n.dy(), concat(sizes, 0)), copies)}};
}

}  // namespace tile_op

// --- reverse_sequence ---

namespace reverse_sequence_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const int64_t time = checked_axis("reverse_sequence", n.attr("time_axis"), x.rank());
  const int64_t batch = checked_axis("reverse_sequence", n.attr("batch_axis"), x.rank());
  if (time == batch)
    throw operand_error(n, fmt::format("time_axis and batch_axis are both {}", time));
  const Value lengths = n.in("lengths");
  if (lengths.rank() != 1 || provably_different(lengths.dim(0), x.dim(batch)))
    throw operand_error(n, fmt::format("lengths must be a vector of {} numbers", x.dim(batch)));
  return {x.type()};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t time = checked_axis("reverse_sequence", c.attr("time_axis"), x.rank());
  const int64_t batch = checked_axis("reverse_sequence", c.attr("batch_axis"), x.rank());
  const auto lengths = read_vector(c, "lengths", static_cast<size_t>(x.extent(batch)));
  for (const int64_t length : lengths)
    if (length < 0 || length > x.extent(time))
      throw user_error("reverse_sequence: a length is {}, but a sequence has {} elements", length,
                       x.extent(time));
  const Extents strides = row_major_strides(x.extents());
  const int64_t time_stride = strides[static_cast<size_t>(time)];
  const int64_t batch_stride = strides[static_cast<size_t>(batch)];
  Tensor y(x.dtype(), x.extents());
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    auto to = mutable_stored<T>(y).begin();
    for (int64_t i = 0; i < x.count(); ++i) {
      const int64_t position = i / time_stride % x.extent(time);
      const int64_t length = lengths[static_cast<size_t>(i / batch_stride % x.extent(batch))];
      const int64_t source = position < length ? length - 1 - position : position;
      *to++ = from[static_cast<size_t>(i + (source - position) * time_stride)];
    }
  });
  return {y};
}

void lower(LowerContext& c) {
  const Value x = c.node().in("x"), lengths = c.node().in("lengths");
  const int64_t time = checked_axis("reverse_sequence", c.node().attr("time_axis"), x.rank());
  const int64_t batch = checked_axis("reverse_sequence", c.node().attr("batch_axis"), x.rank());
  if (lengths.dim(0) != x.dim(batch))
    return;
  c.define([&](const Index& at) {
    const Scalar position = at[static_cast<size_t>(time)], zero = Scalar::zero(DType::I64);
    const Scalar given = c.stored(lengths, {at[static_cast<size_t>(batch)]});
    const Scalar length =
        require(less_equal(zero, given) && less_equal(given, Scalar::index(x.dim(time))), given);
    Index from = at;
    from[static_cast<size_t>(time)] = select(less(position, length), length - 1 - position, position);
    return c.stored(x, from);
  });
}

std::vector<Operand> grad(const GradContext& n) { return {{"x", n.repeat({{"x", n.dy()}})}}; }

}  // namespace reverse_sequence_op

}  // namespace

const Family& pad_ops() {
  static const Family ops = {
      {.name = "pad",
       .doc = "elements added before and after along axes; negative pads cut off",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"pads", "i64"}, {"value", "T", Arity::Optional}},
       .attributes =
           {{"axes", AttributeKind::Ints, "pads has the counts before, then those after, of these",
             std::nullopt, Binding::Late},
            {"mode", AttributeKind::String,
             "what is added: constant (value, or zero), edge (the nearest element), reflect (mirrored "
             "at it) or wrap (from the other end)",
             "constant"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = pad_op::infer,
       .eval = pad_op::eval,
       .lower = pad_op::lower,
       .grad = pad_op::grad},
      {.name = "tile",
       .doc = "x repeated along each axis",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"repeats", "i64"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = tile_op::infer,
       .content = tile_op::content,
       .eval = tile_op::eval,
       .lower = tile_op::lower,
       .grad = tile_op::grad},
      {.name = "reverse_sequence",
       .doc = "along the time axis, the first elements in reverse: as many as lengths says for each batch",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"lengths", "i64"}},
       .attributes = {{"time_axis", AttributeKind::Int, "the axis that is reversed"},
                      {"batch_axis", AttributeKind::Int, "the axis along which lengths differ"}},
       .results = {{"y", "T"}},
       .infer = reverse_sequence_op::infer,
       .eval = reverse_sequence_op::eval,
       .lower = reverse_sequence_op::lower,
       .grad = reverse_sequence_op::grad},
  };
  return ops;
}

Value pad(Value x, Value pads, const std::vector<int64_t>& axes, Value value) {
  return x.graph().create("pad", {{"x", x}, {"pads", pads}, {"value", value}}, {{"axes", axes}})->result();
}
Value tile(Value x, Value repeats) {
  return x.graph().create("tile", {{"x", x}, {"repeats", repeats}})->result();
}

}  // namespace tenon
