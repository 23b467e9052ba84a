#include "ops/reshape.h"

#include <algorithm>
#include <numeric>

#include "ops/data.h"
#include "ops/elements.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// Elements keep their order, so what is known of them stays known.
std::optional<std::vector<Dim>> same_content(const Node& n) { return n.in("x").known_dims(); }

// --- reshape
// ---------------------------------------------------------------------------------------------------------

namespace reshape_op {

// The rank a shape operand asks for, when it is known how many numbers it holds.
Shape unknown_shape(Value shape) {
  if (!shape.shape().ranked() || !shape.dim(0).is_constant())
    return Shape::unranked();
  return Shape::unknown(*shape.dim(0).constant());
}

Types infer(const Node& n) {
  const Value x = n.in("x"), shape = n.in("shape");
  if (shape.shape().ranked() && shape.rank() != 1)
    throw operand_error(n, "shape must be a vector");
  const auto wanted = shape.known_dims();
  if (!wanted)
    return {Type::tensor(x.dtype(), unknown_shape(shape))};
  std::vector<Dim> dims = *wanted;
  Dim rest = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == Dim(0) && !n.attr("allow_zero")) {
      if (!x.shape().ranked()) {
        dims[i] = Dim();
      } else {
        if (static_cast<int64_t>(i) >= x.rank())
          throw operand_error(
              n, fmt::format("shape[{}] is 0, which copies a dimension that x does not have", i));
        dims[i] = x.dim(static_cast<int64_t>(i));
      }
    }
    if (dims[i] == Dim(-1)) {
      if (open)
        throw operand_error(n, "shape has more than one -1");
      open = i;
    } else if (dims[i].is_constant() && *dims[i].constant() < 0) {
      throw operand_error(n, fmt::format("shape[{}] is {}", i, *dims[i].constant()));
    } else {
      rest = rest * dims[i];
    }
  }
  const Dim count = x.shape().element_count();
  if (open) {
    const auto exact = divide_exactly(count, rest);
    if (!exact && count.is_constant() && rest.is_constant() && rest != Dim(0))
      throw operand_error(
          n, fmt::format("{} elements do not divide into [{}]", *count.constant(), fmt::join(*wanted, ",")));
    dims[*open] = exact ? *exact : Dim();
  } else if (count.is_constant() && rest.is_constant() && !(count == rest)) {
    throw operand_error(
        n, fmt::format("{} elements do not fit into [{}]", *count.constant(), fmt::join(*wanted, ",")));
  }
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  Extents extents = as_ints(c.in("shape"));
  int64_t rest = 1, open = -1;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 && !c.attr("allow_zero")) {
      if (i >= x.extents().size())
        throw user_error("reshape: shape[{}] is 0, which copies a dimension that x does not have", i);
      extents[i] = x.extents()[i];
    }
    if (extents[i] == -1 && open == -1)
      open = static_cast<int64_t>(i);
    else
      rest *= extents[i];
  }
  if (open >= 0)
    extents[static_cast<size_t>(open)] = rest == 0 ? 0 : x.count() / rest;
  if (std::any_of(extents.begin(), extents.end(), [](int64_t e) { return e < 0; }) ||
      element_count(extents) != x.count())
    throw user_error("reshape: {} elements do not fit into [{}]", x.count(),
                     fmt::join(as_ints(c.in("shape")), ","));
  return {x.reshaped(extents)};
}

}  // namespace reshape_op

// --- squeeze and unsqueeze
// -------------------------------------------------------------------------------------------

namespace squeeze_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const auto axes = checked_axes("squeeze", n.attr("axes"), x.rank());
  std::vector<Dim> dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i))
      dims.push_back(x.dim(i));
    else if (x.dim(i).is_constant() && x.dim(i) != Dim(1))
      throw operand_error(n, fmt::format("dimension {} is {}, not 1", i, x.dim(i)));
  }
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const auto axes = checked_axes("squeeze", c.attr("axes"), x.rank());
  Extents extents;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i))
      extents.push_back(x.extent(i));
    else if (x.extent(i) != 1)
      throw user_error("squeeze: dimension {} of [{}] is not 1", i, fmt::join(x.extents(), ","));
  }
  return {x.reshaped(extents)};
}

}  // namespace squeeze_op

namespace unsqueeze_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const std::vector<int64_t>& given = n.attr("axes");
  const auto axes = checked_axes("unsqueeze", given, x.rank() + static_cast<int64_t>(given.size()));
  std::vector<Dim> dims = x.shape().dims();
  for (int64_t axis : axes)
    dims.insert(dims.begin() + axis, Dim(1));
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<int64_t> given = c.attr("axes").as<Attribute::Ints>();
  Extents extents = x.extents();
  for (int64_t axis : checked_axes("unsqueeze", given, x.rank() + static_cast<int64_t>(given.size())))
    extents.insert(extents.begin() + axis, 1);
  return {x.reshaped(extents)};
}

}  // namespace unsqueeze_op

// --- transpose
// -------------------------------------------------------------------------------------------------------

namespace transpose_op {

void check_permutation(const std::vector<int64_t>& permutation, int64_t rank) {
  std::vector<int64_t> sorted = permutation, every(static_cast<size_t>(rank));
  std::sort(sorted.begin(), sorted.end());
  std::iota(every.begin(), every.end(), 0);
  if (sorted != every)
    throw user_error("transpose: [{}] is not a permutation of the axes of a tensor of rank {}",
                     fmt::join(permutation, ","), rank);
}

Types infer(const Node& n) {
  const Value x = n.in("x");
  const std::vector<int64_t>& permutation = n.attr("permutation");
  check_permutation(permutation, x.rank());
  std::vector<Dim> dims;
  for (int64_t axis : permutation)
    dims.push_back(x.dim(axis));
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<int64_t> permutation = c.attr("permutation").as<Attribute::Ints>();
  check_permutation(permutation, x.rank());
  const Extents own = row_major_strides(x.extents());
  Extents extents, strides;
  for (int64_t axis : permutation) {
    extents.push_back(x.extent(axis));
    strides.push_back(own[static_cast<size_t>(axis)]);
  }
  return {gather_strided(x, extents, strides)};
}

}  // namespace transpose_op

// --- broadcast
// -------------------------------------------------------------------------------------------------------

namespace broadcast_op {

Types infer(const Node& n) {
  const Value x = n.in("x"), shape = n.in("shape");
  const auto wanted = shape.known_dims();
  if (!x.shape().ranked() || !shape.shape().ranked())
    return {Type::tensor(x.dtype(), Shape::unranked())};
  if (!wanted) {
    const Shape unknown = reshape_op::unknown_shape(shape);
    return {Type::tensor(x.dtype(),
                         unknown.ranked() ? Shape::unknown(std::max(unknown.rank(), x.rank())) : unknown)};
  }
  const std::optional<Shape> result = broadcast(x.shape(), Shape(*wanted));
  if (!result)
    throw operand_error(n, fmt::format("x does not broadcast to [{}]", fmt::join(*wanted, ",")));
  return {Type::tensor(x.dtype(), *result)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const Extents extents = broadcast_extents("broadcast", x.extents(), as_ints(c.in("shape")));
  return {gather_strided(x, extents, broadcast_strides(x.extents(), extents))};
}

// Elements of a shape broadcast along a vector: the one element, repeated.
std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const auto extents = n.in("shape").known_ints();
  if (!dims || dims->size() != 1 || !extents || extents->size() > 1)
    return std::nullopt;
  return std::vector<Dim>(
      extents->empty() ? 1 : static_cast<size_t>(std::clamp<int64_t>(extents->front(), 0, 64)),
      dims->front());
}

}  // namespace broadcast_op

// --- shape
// -----------------------------------------------------------------------------------------------------------

namespace shape_op {

Types infer(const Node& n) {
  const Shape& shape = n.in("x").shape();
  return {Type::tensor(DType::I64, {shape.ranked() ? Dim(shape.rank()) : Dim()})};
}

std::optional<std::vector<Dim>> content(const Node& n) {
  const Shape& shape = n.in("x").shape();
  if (!shape.ranked())
    return std::nullopt;
  return shape.dims();
}

Data eval(const Call& c) { return {Tensor::of(c.in("x").extents())}; }

}  // namespace shape_op

}  // namespace

const Family& reshape_ops() {
  static const Family ops = {
      {.name = "reshape",
       .doc = "the same elements, in the same order, under another shape",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"shape", "i64"}},
       .attributes = {{"allow_zero", AttributeKind::Bool,
                       "whether a 0 in shape is a size; else it copies the dimension of x in that place",
                       true}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = reshape_op::infer,
       .content = same_content,
       .eval = reshape_op::eval},
      {.name = "squeeze",
       .doc = "drops dimensions of size 1",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .attributes = {{"axes", AttributeKind::Ints, "the dimensions to drop", std::nullopt, Binding::Late}},
       .results = {{"y", "T"}},
       .infer = squeeze_op::infer,
       .content = same_content,
       .eval = squeeze_op::eval},
      {.name = "unsqueeze",
       .doc = "adds dimensions of size 1",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .attributes = {{"axes", AttributeKind::Ints, "where, counted in the result", std::nullopt,
                       Binding::Late}},
       .results = {{"y", "T"}},
       .infer = unsqueeze_op::infer,
       .content = same_content,
       .eval = unsqueeze_op::eval},
      {.name = "transpose",
       .doc = "the dimensions in another order",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .attributes = {{"permutation", AttributeKind::Ints,
                       "dimension i of the result is dimension permutation[i] of x"}},
       .results = {{"y", "T"}},
       .infer = transpose_op::infer,
       .eval = transpose_op::eval},
      {.name = "broadcast",
       .doc = "x repeated to the shape that its own and the given one broadcast to",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"shape", "i64"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = broadcast_op::infer,
       .content = broadcast_op::content,
       .eval = broadcast_op::eval},
      {.name = "shape",
       .doc = "the sizes of x's dimensions",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .results = {{"y", "i64"}},
       .traits = {.takes_unranked = true},
       .infer = shape_op::infer,
       .content = shape_op::content,
       .eval = shape_op::eval},
  };
  return ops;
}

Value reshape(Value x, Value shape) {
  return x.graph().create("reshape", {{"x", x}, {"shape", shape}})->result();
}
Value reshape(Value x, const std::vector<int64_t>& shape) { return reshape(x, int_vector(x.graph(), shape)); }
Value squeeze(Value x, const std::vector<int64_t>& axes) {
  return x.graph().create("squeeze", {{"x", x}}, {{"axes", axes}})->result();
}
Value unsqueeze(Value x, const std::vector<int64_t>& axes) {
  return x.graph().create("unsqueeze", {{"x", x}}, {{"axes", axes}})->result();
}
Value transpose(Value x, const std::vector<int64_t>& permutation) {
  return x.graph().create("transpose", {{"x", x}}, {{"permutation", permutation}})->result();
}
Value transpose_last_two(Value x) {
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation.at(permutation.size() - 1), permutation.at(permutation.size() - 2));
  return transpose(x, permutation);
}
Value broadcast_to(Value x, Value shape) {
  return x.graph().create("broadcast", {{"x", x}, {"shape", shape}})->result();
}
Value shape_of(Value x) { return x.graph().create("shape", {{"x", x}})->result(); }

}  // namespace tenon
