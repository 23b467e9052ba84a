#include "ops/gather.h"

#include "ir/evaluate.h"
#include "ops/indices.h"

namespace tenon {
namespace {

// The three ops differ in which places of x are read, and in the one attribute that says so.
using FindShape = Shape (*)(const Node&, int64_t);

template <FindShape find>
Types infer(const Node& n) {
  return {Type::tensor(n.in("x").dtype(), find(n, n.attr(n.op().attributes.front().name)))};
}

template <FindPlaces find>
Data eval(const Call& c) {
  const OpDef& op = c.node().op();
  const Tensor& x = c.in("x");
  return {read_places(x, find(op.name, x.extents(), c.in("indices"), c.attr(op.attributes.front().name)))};
}

template <FindPlaces find>
std::optional<std::vector<Dim>> content(const Node& n) {
  const auto dims = n.in("x").known_dims();
  const auto places = known_places(n, find, n.attr(n.op().attributes.front().name));
  if (!dims || !places)
    return std::nullopt;
  std::vector<Dim> gathered;
  for (int64_t offset : places->offsets)
    for (int64_t i = 0; i < places->run; ++i)
      gathered.push_back((*dims)[static_cast<size_t>(offset + i)]);
  return gathered;
}

template <FindPlaces find_places, FindShape find_shape>
OpDef gathering(std::string_view name, std::string_view doc, AttributeDecl attribute) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}, {"indices", "I"}},
          .attributes = {std::move(attribute)},
          .results = {{"y", "T"}},
          .types = {{"I", {DType::I64, DType::I32}}},
          .infer = infer<find_shape>,
          .content = content<find_places>,
          .eval = eval<find_places>};
}

}  // namespace

const Family& gather_ops() {
  static const Family ops = {
      gathering<places_along_axis, shape_along_axis>(
          "gather", "the slices of x that indices name along an axis",
          {"axis", AttributeKind::Int, "the axis that indices stand for", 0}),
      gathering<places_of_elements, shape_of_elements>(
          "gather_elements", "for every index the element of x at its place, but at the index along the axis",
          {"axis", AttributeKind::Int, "the axis along which indices count", 0}),
      gathering<places_of_tuples, shape_of_tuples>(
          "gather_nd", "the parts of x that the tuples in the last dimension of indices point at",
          {"batch_dims", AttributeKind::Int, "how many leading dimensions x and indices have in common", 0}),
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
