#include "ops/gather.h"

#include "ir/evaluate.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/indices.h"
#include "ops/lower.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon {
namespace {

// The three ops differ in which places of x are read, and in the one attribute that says so.
using FindShape = Shape (*)(const Node&, int64_t);

constexpr char kAxis[] = "axis", kBatchDims[] = "batch_dims";

template <FindShape find, const char* attribute>
Types infer(const Node& n) {
  return {Type::tensor(n.in("x").dtype(), find(n, n.attr(attribute)))};
}

template <FindPlaces find, const char* attribute>
Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  return {read_places(x, find(c.node().op().name, x.extents(), c.in("indices"), c.attr(attribute)))};
}

template <FindPlaces find, const char* attribute>
std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const auto places = known_places(n, find, n.attr(attribute));
  if (!dims || !places)
    return std::nullopt;
  std::vector<Dim> gathered;
  for (int64_t offset : places->offsets)
    for (int64_t i = 0; i < places->run; ++i)
      gathered.push_back((*dims)[static_cast<size_t>(offset + i)]);
  return gathered;
}

// --- lowering ---

void lower_gather(LowerContext& c) {
  const Value x = c.node().in("x"), indices = c.node().in("indices");
  const auto axis = static_cast<size_t>(checked_axis("gather", c.node().attr("axis"), x.rank()));
  c.define([&](const Index& at) {
    const auto begin = at.begin() + static_cast<int64_t>(axis), end = begin + indices.rank();
    Index from(at.begin(), begin);
    from.push_back(c.position(c.stored(indices, Index(begin, end)), x.dim(static_cast<int64_t>(axis))));
    from.insert(from.end(), end, at.end());
    return c.stored(x, from);
  });
}

void lower_gather_elements(LowerContext& c) {
  const Value x = c.node().in("x"), indices = c.node().in("indices");
  const auto axis = static_cast<size_t>(checked_axis("gather_elements", c.node().attr("axis"), x.rank()));
  c.define([&](const Index& at) {
    Index from = at;
    from[axis] = c.position(c.stored(indices, at), x.dim(static_cast<int64_t>(axis)));
    Scalar element = c.stored(x, from);
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != static_cast<int64_t>(axis) && (x.dim(i) - indices.dim(i)).lower_bound().value_or(-1) < 0)
        element = require(less_equal(Scalar::index(indices.dim(i)), Scalar::index(x.dim(i))), element);
    return element;
  });
}

void lower_gather_nd(LowerContext& c) {
  const Value x = c.node().in("x"), indices = c.node().in("indices");
  const auto batch = static_cast<size_t>(c.node().attr("batch_dims").as<int64_t>());
  const std::optional<int64_t> length = indices.dim(-1).constant();
  if (!length)
    return;
  c.define([&](const Index& at) {
    const auto tuples = at.begin() + indices.rank() - 1;
    Index from(at.begin(), at.begin() + static_cast<int64_t>(batch));
    for (int64_t i = 0; i < *length; ++i) {
      Index place(at.begin(), tuples);
      place.push_back(Scalar::index(i));
      from.push_back(c.position(c.stored(indices, place), x.dim(static_cast<int64_t>(batch) + i)));
    }
    from.insert(from.end(), tuples, at.end());
    Scalar element = c.stored(x, from);
    for (int64_t i = 0; i < static_cast<int64_t>(batch); ++i)
      element = LowerContext::require_equal(x.dim(i), indices.dim(i), element);
    return element;
  });
}

// --- gradients: what was read from a place is added up there ---

// With the axis in front, each index is a tuple of one.
std::vector<Operand> grad_gather(const GradContext& n) {
  const Value x = n.in("x"), indices = n.in("indices");
  const int64_t axis = checked_axis("gather", n.attr("axis"), x.rank());
  std::vector<int64_t> of_x, of_y,
      back;  // permutations: the axis, or the indices, come first; and back again
  of_x.push_back(axis);
  for (int64_t i = 0; i < indices.rank(); ++i)
    of_y.push_back(axis + i);
  for (int64_t i = 0; i < x.rank(); ++i) {
    back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
    if (i == axis)
      continue;
    of_x.push_back(i);
    of_y.push_back(i < axis ? i : i + indices.rank() - 1);
  }
  const Value sum =
      scatter_nd(transpose(zeros_like(x), of_x), unsqueeze(indices, {-1}), transpose(n.dy(), of_y), "add");
  return {{"x", transpose(sum, back)}};
}

std::vector<Operand> grad_gather_elements(const GradContext& n) {
  return {{"x", scatter_elements(zeros_like(n.in("x")), n.in("indices"), n.dy(), n.attr("axis"), "add")}};
}

// The tuples with the numbers of their batch in front, so that they need none in common.
Value whole_tuples(Value indices, int64_t batch_dims) {
  Graph& graph = indices.graph();
  const auto number = [&](int64_t value) { return constant(graph, Tensor::scalar(value)); };
  std::vector<Value> parts;
  const Value one_each = slice(indices, -1, 0, 1);
  for (int64_t i = 0; i < batch_dims; ++i) {
    std::vector<int64_t> along(static_cast<size_t>(indices.rank()), 1);
    along[static_cast<size_t>(i)] = -1;
    const Value numbers = range(number(0), squeeze(size_along(indices, i), {0}), number(1));
    parts.push_back(broadcast_to(reshape(numbers, along), shape_of(one_each)));
  }
  parts.push_back(cast(indices, DType::I64));
  return concat(parts, -1);
}

std::vector<Operand> grad_gather_nd(const GradContext& n) {
  const Value indices = n.in("indices");
  const int64_t batch_dims = n.attr("batch_dims");
  if (provably_equal(indices.dim(-1), 0) && batch_dims > 0)
    return {{"x", n.dy()}};  // empty tuples point at the whole batch
  return {{"x", scatter_nd(zeros_like(n.in("x")),
                           batch_dims == 0 ? indices : whole_tuples(indices, batch_dims), n.dy(), "add")}};
}

template <FindPlaces find_places, FindShape find_shape, const char* attribute>
OpDef gathering(std::string_view name, std::string_view doc, std::string_view attribute_doc,
                LowerFunction lower, GradFunction grad) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}, {"indices", "I"}},
          .attributes = {{attribute, AttributeKind::Int, attribute_doc, 0}},
          .results = {{"y", "T"}},
          .types = {{"I", {DType::I64, DType::I32}}},
          .infer = infer<find_shape, attribute>,
          .content = content<find_places, attribute>,
          .eval = eval<find_places, attribute>,
          .lower = lower,
          .grad = grad};
}

}  // namespace

const Family& gather_ops() {
  static const Family ops = {
      gathering<places_along_axis, shape_along_axis, kAxis>(
          "gather", "the slices of x that indices name along an axis", "the axis that indices stand for",
          lower_gather, grad_gather),
      gathering<places_of_elements, shape_of_elements, kAxis>(
          "gather_elements", "for every index the element of x at its place, but at the index along the axis",
          "the axis along which indices count", lower_gather_elements, grad_gather_elements),
      gathering<places_of_tuples, shape_of_tuples, kBatchDims>(
          "gather_nd", "the parts of x that the tuples in the last dimension of indices point at",
          "how many leading dimensions x and indices have in common", lower_gather_nd, grad_gather_nd),
  };
  return ops;
}

Value gather(Value x, Value indices, int64_t axis) {
  return x.graph().create("gather", {{"x", x}, {"indices", indices}}, {{"axis", axis}})->result();
}
Value gather_elements(Value x, Value indices, int64_t axis) {
  return x.graph().create("gather_elements", {{"x", x}, {"indices", indices}}, {{"axis", axis}})->result();
}
Value gather_nd(Value x, Value indices, int64_t batch_dims) {
  return x.graph()
      .create("gather_nd", {{"x", x}, {"indices", indices}}, {{"batch_dims", batch_dims}})
      ->result();
}

}  // namespace tenon
