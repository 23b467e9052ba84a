#include "ops/reshape.h"

#include <algorithm>
#include <numeric>

#include "ir/size_condition.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// Elements keep their order, so what is known of them stays known.
std::optional<std::vector<Dim>> same_content(const Node& n) { return n.in("x").known_dims(); }

// --- reshape ---

namespace reshape_op {

// count / rest, where running has made sure that it leaves no remainder.
Dim divide_sizes(const Dim& count, const Dim& rest) {
  if (const auto exact = divide_exactly(count, rest))
    return *exact;
  return rest.is_constant() && *rest.constant() > 0 ? floor_div(count, rest) : Dim();
}

Types infer(const Node& n) {
  const Value x = n.in("x"), shape = n.in("shape");
  if (shape.shape().ranked() && shape.rank() != 1)
    throw operand_error(n, "shape must be a vector");
  const auto rank = known_length(n, "shape");
  if (!rank)
    return {Type::tensor(x.dtype(), Shape::unranked())};
  std::vector<Dim> dims = vector_dims(n, "shape", static_cast<size_t>(*rank));
  const std::vector<Dim> wanted = dims;
  Dim rest = 1;
  std::vector<size_t> open;  // where the size is not given: -1, or not known yet
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == Dim(0) && !n.attr("allow_zero")) {
      if (x.shape().ranked() && static_cast<int64_t>(i) >= x.rank())
        throw operand_error(n,
                            fmt::format("shape[{}] is 0, which copies a dimension that x does not have", i));
      dims[i] = x.shape().ranked() ? x.dim(static_cast<int64_t>(i)) : Dim();
    }
    if (dims[i].is_unknown() || dims[i] == Dim(-1))
      open.push_back(i);
    else if (dims[i].is_constant() && *dims[i].constant() < 0)
      throw operand_error(n, fmt::format("shape[{}] is {}", i, dims[i]));
    else
      rest = rest * dims[i];
  }
  if (std::count(dims.begin(), dims.end(), Dim(-1)) > 1)
    throw operand_error(n, "shape has more than one -1");
  const Dim count = x.shape().element_count();
  const bool known = count.is_constant() && rest.is_constant();
  if (open.empty())
    assume_equal(count, rest);
  if (open.size() == 1)
    assume_multiple(count, rest);
  if (open.empty() && known && count != rest)
    throw operand_error(n, fmt::format("{} elements do not fit into [{}]", count, fmt::join(wanted, ",")));
  if (open.size() == 1 && known && rest != Dim(0) && mod(count, rest) != Dim(0))
    throw operand_error(n, fmt::format("{} elements do not divide into [{}]", count, fmt::join(wanted, ",")));
  for (const size_t i : open)
    dims[i] = open.size() == 1 ? divide_sizes(count, rest) : Dim();
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  if (c.in("shape").rank() != 1)
    throw user_error("reshape: shape must be a vector, but is {}", type_of(c.in("shape")));
  const std::vector<int64_t> wanted = as_ints(c.in("shape"));
  const auto fail = [&] {
    return user_error("reshape: {} elements do not fit into [{}]", x.count(), fmt::join(wanted, ","));
  };
  Extents extents = wanted;
  // What is left for a -1: dimensions that are copied drop out on both sides, so that they may be 0.
  Extents from = x.extents(), given;
  std::optional<size_t> open;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 && !c.attr("allow_zero")) {
      if (i >= from.size())
        throw user_error("reshape: shape[{}] is 0, which copies a dimension that x does not have", i);
      extents[i] = from[i];
      from[i] = 1;
    } else if (extents[i] == -1 && !open) {
      open = i;
    } else if (extents[i] < 0) {
      throw fail();
    } else {
      given.push_back(extents[i]);
    }
  }
  if (open) {
    const int64_t rest = element_count(given);
    if (rest == 0)
      throw fail();  // any size would do
    extents[*open] = element_count(from) / rest;
  }
  if (element_count(extents) != x.count())
    throw fail();
  return {x.reshaped(extents)};
}

}  // namespace reshape_op

// --- squeeze and unsqueeze ---

// The shape where only the number of the axes that come (direction 1) or go (-1) is known, or not even that.
Shape late_shape(const Node& n, int64_t direction) {
  const Shape& shape = n.in("x").shape();
  const auto count = known_length(n, "axes");
  if (!shape.ranked() || !count)
    return Shape::unranked();
  const int64_t rank = shape.rank() + direction * *count;
  if (rank < 0)
    throw operand_error(n, fmt::format("{} axes are more than x has", *count));
  return Shape::unknown(rank);
}

namespace squeeze_op {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (n.is_late("axes"))
    return {Type::tensor(x.dtype(), late_shape(n, -1))};
  if (!x.shape().ranked())
    return {x.type()};
  const auto axes = checked_axes("squeeze", n.attr("axes"), x.rank());
  std::vector<Dim> dims;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i))
      dims.push_back(x.dim(i));
    else if (x.dim(i).is_constant() && x.dim(i) != Dim(1))
      throw operand_error(n, fmt::format("dimension {} is {}, not 1", i, x.dim(i)));
    else
      assume_equal(x.dim(i), 1);
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
  if (n.is_late("axes"))
    return {Type::tensor(x.dtype(), late_shape(n, 1))};
  if (!x.shape().ranked())
    return {x.type()};
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

// --- transpose ---

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

Extents permute(const Extents& extents, const std::vector<int64_t>& permutation) {
  Extents permuted;
  for (int64_t axis : permutation)
    permuted.push_back(extents[static_cast<size_t>(axis)]);
  return permuted;
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<int64_t> permutation = c.attr("permutation").as<Attribute::Ints>();
  check_permutation(permutation, x.rank());
  return {gather_strided(x, permute(x.extents(), permutation),
                         permute(row_major_strides(x.extents()), permutation))};
}

std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const auto extents = n.in("x").shape().extents();
  if (!dims || !extents)
    return std::nullopt;
  const std::vector<int64_t>& permutation = n.attr("permutation");
  return gather_strided(*dims, permute(*extents, permutation),
                        permute(row_major_strides(*extents), permutation));
}

}  // namespace transpose_op

// --- broadcast ---

namespace broadcast_op {

Types infer(const Node& n) {
  const Value x = n.in("x"), shape = n.in("shape");
  if (shape.shape().ranked() && shape.rank() != 1)
    throw operand_error(n, "shape must be a vector");
  const auto rank = known_length(n, "shape");
  if (!x.shape().ranked() || !rank)
    return {Type::tensor(x.dtype(), Shape::unranked())};
  const std::vector<Dim> wanted = vector_dims(n, "shape", static_cast<size_t>(*rank));
  check_sizes(n, "shape", wanted);
  const std::optional<Shape> result = broadcast(x.shape(), wanted);
  if (!result)
    throw operand_error(n, fmt::format("x does not broadcast to [{}]", fmt::join(wanted, ",")));
  return {Type::tensor(x.dtype(), *result)};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  if (c.in("shape").rank() != 1)
    throw user_error("broadcast: shape must be a vector, but is {}", type_of(c.in("shape")));
  const Extents extents = broadcast_extents("broadcast", x.extents(), as_ints(c.in("shape")));
  return {gather_strided(x, extents, broadcast_strides(x.extents(), extents))};
}

// One element, repeated; or a vector as it is.
std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const Dim count = n.result().shape().element_count();
  if (!dims || !count.is_constant())
    return std::nullopt;
  if (dims->size() == 1)
    return std::vector<Dim>(static_cast<size_t>(*count.constant()), dims->front());
  return n.result().rank() == 1 ? dims : std::nullopt;
}

}  // namespace broadcast_op

// --- shape ---

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

// --- lowering ---

void lower_transpose(LowerContext& c) {
  const std::vector<int64_t>& permutation = c.node().attr("permutation");
  c.define([&](const Index& at) {
    Index from = at;
    for (size_t i = 0; i < at.size(); ++i)
      from[static_cast<size_t>(permutation[i])] = at[i];
    return c.stored(c.node().in("x"), from);
  });
}

void lower_broadcast(LowerContext& c) {
  c.define([&](const Index& at) { return c.broadcast("x", at); });
}

void lower_shape(LowerContext& c) {
  const std::vector<Dim>& dims = c.node().in("x").shape().dims();
  c.define([&](const Index& at) {
    Scalar size = Scalar::index(0);
    for (size_t i = dims.size(); i-- > 0;)
      size = select(equal(at.front(), Scalar::index(static_cast<int64_t>(i))), Scalar::index(dims[i]), size);
    return size;
  });
}

// --- gradients ---

std::vector<Operand> grad_reshape(const GradContext& n) {
  return {{"x", reshape(n.dy(), shape_of(n.in("x")))}};
}

std::vector<Operand> grad_transpose(const GradContext& n) {
  const std::vector<int64_t>& permutation = n.attr("permutation");
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return {{"x", transpose(n.dy(), inverse)}};
}

// What was repeated is summed back by who calls.
std::vector<Operand> grad_broadcast(const GradContext& n) { return {{"x", n.dy()}}; }

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
       .traits = {.reshapes = true, .takes_unranked = true},
       .infer = reshape_op::infer,
       .content = same_content,
       .eval = reshape_op::eval,
       .grad = grad_reshape},
      {.name = "squeeze",
       .doc = "drops dimensions of size 1",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .attributes = {{"axes", AttributeKind::Ints, "the dimensions to drop", std::nullopt, Binding::Late}},
       .results = {{"y", "T"}},
       .traits = {.reshapes = true, .takes_unranked = true},
       .infer = squeeze_op::infer,
       .content = same_content,
       .eval = squeeze_op::eval,
       .grad = grad_reshape},
      {.name = "unsqueeze",
       .doc = "adds dimensions of size 1",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .attributes = {{"axes", AttributeKind::Ints, "where, counted in the result", std::nullopt,
                       Binding::Late}},
       .results = {{"y", "T"}},
       .traits = {.reshapes = true, .takes_unranked = true},
       .infer = unsqueeze_op::infer,
       .content = same_content,
       .eval = unsqueeze_op::eval,
       .grad = grad_reshape},
      {.name = "transpose",
       .doc = "the dimensions in another order",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .attributes = {{"permutation", AttributeKind::Ints,
                       "dimension i of the result is dimension permutation[i] of x"}},
       .results = {{"y", "T"}},
       .infer = transpose_op::infer,
       .content = transpose_op::content,
       .eval = transpose_op::eval,
       .lower = lower_transpose,
       .grad = grad_transpose},
      {.name = "broadcast",
       .doc = "x repeated to the shape that its own and the given one broadcast to",
       .category = Category::Shape,
       .operands = {{"x", "T"}, {"shape", "i64"}},
       .results = {{"y", "T"}},
       .traits = {.takes_unranked = true},
       .infer = broadcast_op::infer,
       .content = broadcast_op::content,
       .eval = broadcast_op::eval,
       .lower = lower_broadcast,
       .grad = grad_broadcast},
      {.name = "shape",
       .doc = "the sizes of x's dimensions",
       .category = Category::Shape,
       .operands = {{"x", "T"}},
       .results = {{"y", "i64"}},
       .traits = {.takes_unranked = true},
       .infer = shape_op::infer,
       .content = shape_op::content,
       .eval = shape_op::eval,
       .lower = lower_shape},
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
