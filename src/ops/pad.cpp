#include "ops/pad.h"

#include <algorithm>

#include "ops/elements.h"
#include "ops/shapes.h"

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

// --- pad
// -------------------------------------------------------------------------------------------------------------

namespace pad_op {

void check_mode(const std::string& mode) {
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    throw user_error("pad: mode is \"{}\", but must be constant, edge, reflect or wrap", mode);
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  check_mode(n.attr("mode"));
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
    if (dim.is_constant() && *dim.constant() < 0)
      throw operand_error(n, fmt::format("pads {} and {} cut more off dimension {} than there is", pads[i],
                                         pads[i + axes.size()], axis));
  }
  return {Type::tensor(x.dtype(), dims)};
}

// Which of n elements stands at `position`, which may lie outside.
int64_t source_of(const std::string& mode, int64_t position, int64_t n) {
  if (position >= 0 && position < n)
    return position;
  if (mode == "constant")
    return -1;
  if (mode == "edge")
    return position < 0 ? 0 : n - 1;
  const auto modulo = [](int64_t a, int64_t b) { return (a % b + b) % b; };
  if (mode == "wrap")
    return modulo(position, n);
  if (n == 1)
    return 0;
  // There and back again, without repeating the ends.
  const int64_t folded = modulo(position, 2 * n - 2);
  return folded < n ? folded : 2 * n - 2 - folded;
}

Data eval(const Call& c) {
  const std::string mode = c.attr("mode");
  check_mode(mode);
  const std::vector<int64_t> axes = c.attr("axes").as<Attribute::Ints>();
  checked_axes("pad", axes, c.in("x").rank());
  const std::vector<int64_t> pads = read_vector(c, "pads", 2 * axes.size());
  Tensor zero(c.in("x").dtype(), {});
  const Tensor& value = c.has("value") ? c.in("value") : zero;
  if (value.count() != 1)
    throw user_error("pad: value must be one element, but is {}", type_of(value));

  // First what is cut off, then what is added: the values that are added come from what is left.
  Extents cut = c.in("x").extents(), padded = cut;
  const Extents strides = row_major_strides(cut);
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(checked_axis("pad", axes[i], c.in("x").rank()));
    const int64_t before = pads[i], after = pads[i + axes.size()], extent = cut[axis];
    const auto add = [](int64_t a, int64_t b) {
      int64_t sum;
      if (__builtin_add_overflow(a, b, &sum))
        throw user_error("pad: pads of {} overflow the size of a dimension", b);
      return sum;
    };
    cut[axis] = add(add(extent, std::min<int64_t>(before, 0)), std::min<int64_t>(after, 0));
    padded[axis] = add(add(cut[axis], std::max<int64_t>(before, 0)), std::max<int64_t>(after, 0));
    if (cut[axis] < 0)
      throw user_error("pad: pads {} and {} cut more off dimension {} than there is, {}", before, after, axis,
                       extent);
    if (cut[axis] == 0 && padded[axis] > 0 && mode != "constant")
      throw user_error("pad: dimension {} has no elements to take for mode {}", axis, mode);
    offset -= std::min<int64_t>(before, 0) * strides[axis];
  }
  if (element_count(padded) == 0)
    return {Tensor(value.dtype(), padded)};
  Tensor y = gather_strided(c.in("x"), cut, strides, offset);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = checked_axis("pad", axes[i], y.rank());
    const int64_t before = std::max<int64_t>(pads[i], 0);
    std::vector<int64_t> sources(static_cast<size_t>(padded[static_cast<size_t>(axis)]));
    for (size_t k = 0; k < sources.size(); ++k)
      sources[k] = source_of(mode, static_cast<int64_t>(k) - before, y.extent(axis));
    y = take_along(y, axis, sources, &value);
  }
  return {y};
}

}  // namespace pad_op

// --- tile
// ------------------------------------------------------------------------------------------------------------

namespace tile_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (!x.shape().ranked()) {
    const auto rank = known_length(n.in("repeats"));
    return {Type::tensor(x.dtype(), rank ? Shape::unknown(*rank) : Shape::unranked())};
  }
  const auto rank = static_cast<size_t>(x.rank());
  const std::vector<Dim> times = vector_dims(n, "repeats", rank);
  std::vector<Dim> dims;
  for (size_t i = 0; i < rank; ++i) {
    if (times[i].is_constant() && *times[i].constant() < 0)
      throw operand_error(n, fmt::format("repeats[{}] is {}", i, times[i]));
    dims.push_back(x.dim(static_cast<int64_t>(i)) * times[i]);
  }
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  Tensor y = c.in("x");
  const std::vector<int64_t> repeats = read_vector(c, "repeats", y.extents().size());
  Extents extents;
  for (size_t i = 0; i < repeats.size(); ++i)
    extents.push_back(element_count({y.extents()[i], repeats[i]}));
  if (element_count(extents) == 0)
    return {Tensor(y.dtype(), extents)};
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i] == 1)
      continue;
    std::vector<int64_t> sources(static_cast<size_t>(extents[i]));
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

}  // namespace tile_op

// --- reverse_sequence
// ------------------------------------------------------------------------------------------------

namespace reverse_sequence_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const int64_t time = checked_axis("reverse_sequence", n.attr("time_axis"), x.rank());
  const int64_t batch = checked_axis("reverse_sequence", n.attr("batch_axis"), x.rank());
  if (time == batch)
    throw operand_error(n, fmt::format("time_axis and batch_axis are both {}", time));
  const Value lengths = n.in("lengths");
  if (lengths.rank() != 1 ||
      (lengths.dim(0).is_constant() && x.dim(batch).is_constant() && lengths.dim(0) != x.dim(batch)))
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
       .eval = pad_op::eval},
      {.name = "tile",
       .doc = "x repeated along each axis",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"repeats", "i64"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = tile_op::infer,
       .content = tile_op::content,
       .eval = tile_op::eval},
      {.name = "reverse_sequence",
       .doc = "along the time axis, the first elements in reverse: as many as lengths says for each batch",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"lengths", "i64"}},
       .attributes = {{"time_axis", AttributeKind::Int, "the axis that is reversed"},
                      {"batch_axis", AttributeKind::Int, "the axis along which lengths differ"}},
       .results = {{"y", "T"}},
       .infer = reverse_sequence_op::infer,
       .eval = reverse_sequence_op::eval},
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
