#include "ops/gather.h"

#include "ir/evaluate.h"
#include "ops/indices.h"

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

template <FindPlaces find_places, FindShape find_shape, const char* attribute>
OpDef gathering(std::string_view name, std::string_view doc, std::string_view attribute_doc) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}, {"indices", "I"}},
          .attributes = {{attribute, AttributeKind::Int, attribute_doc, 0}},
          .results = {{"y", "T"}},
          .types = {{"I", {DType::I64, DType::I32}}},
          .infer = infer<find_shape, attribute>,
          .content = content<find_places, attribute>,
          .eval = eval<find_places, attribute>};
}

}  // namespace

const Family& gather_ops() {
  static const Family ops = {
      gathering<places_along_axis, shape_along_axis, kAxis>(
          "gather", "the slices of x that indices name along an axis", "the axis that indices stand for"),
      gathering<places_of_elements, shape_of_elements, kAxis>(
          "gather_elements", "for every index the element of x at its place, but at the index along the axis",
          "the axis along which indices count"),
      gathering<places_of_tuples, shape_of_tuples, kBatchDims>(
          "gather_nd", "the parts of x that the tuples in the last dimension of indices point at",
          "how many leading dimensions x and indices have in common"),
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
