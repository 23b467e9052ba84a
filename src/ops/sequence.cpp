#include "ops/sequence.h"

#include <algorithm>

#include "ops/elements.h"
#include "ops/reshape.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/stack.h"

namespace tenon {
namespace {

constexpr DTypeSet kPositions = {DType::I64, DType::I32};

// A position among `count` places, counted from the front.
size_t checked_position(const Call& c, int64_t otherwise, int64_t length, int64_t count) {
  const int64_t given = c.has("position") ? read_number(c, "position") : otherwise;
  if (given < -length || given >= count)
    throw user_error("{}: position {} is out of range for a sequence of length {}", c.node().op().name, given,
                     length);
  return static_cast<size_t>(given < 0 ? given + length : given);
}

void check_position(const Node& n) {
  if (n.has("position"))
    known_number(n, "position");
}

// --- making and changing sequences ---

namespace construct_op {

Types infer(const Node& n) {
  const std::vector<Value> elements = n.ins("elements");
  if (elements.empty())
    throw user_error(
        "sequence_construct: it has no elements\n  hint: sequence_empty makes an empty sequence");
  Type joined = elements.front().type();
  for (Value element : elements) {
    const std::optional<Type> wider = join(joined, element.type());
    if (!wider)
      throw operand_error(n, "the elements of a sequence must have one dtype");
    joined = *wider;
  }
  return {Type::sequence(joined)};
}

Data eval(const Call& c) {
  const std::span<const Datum> elements = c.all("elements");
  return {Sequence{{elements.begin(), elements.end()}}};
}

}  // namespace construct_op

namespace insert_op {

Types infer(const Node& n) {
  check_position(n);
  const Value sequence = n.in("sequence"), element = n.in("element");
  const std::optional<Type> joined = join(sequence.type().element(), element.type());
  if (!joined)
    throw operand_error(n, "element is not of the sequence's type");
  // The first element of a sequence says all that is known of its elements.
  const bool first = sequence.node() != nullptr && sequence.node()->is("sequence_empty");
  return {Type::sequence(first ? element.type() : *joined)};
}

Data eval(const Call& c) {
  Sequence sequence = c.datum("sequence").sequence();
  const auto length = static_cast<int64_t>(sequence.elements.size());
  const size_t at = checked_position(c, length, length, length + 1);
  sequence.elements.insert(sequence.elements.begin() + static_cast<int64_t>(at), c.datum("element"));
  return {std::move(sequence)};
}

}  // namespace insert_op

namespace erase_op {

Types infer(const Node& n) {
  check_position(n);
  return {n.in("sequence").type()};
}

Data eval(const Call& c) {
  Sequence sequence = c.datum("sequence").sequence();
  const auto length = static_cast<int64_t>(sequence.elements.size());
  const size_t at = checked_position(c, -1, length, length);
  sequence.elements.erase(sequence.elements.begin() + static_cast<int64_t>(at));
  return {std::move(sequence)};
}

}  // namespace erase_op

namespace at_op {

Types infer(const Node& n) {
  check_position(n);
  return {n.in("sequence").type().element()};
}

Data eval(const Call& c) {
  const std::vector<Datum>& elements = c.datum("sequence").sequence().elements;
  const auto length = static_cast<int64_t>(elements.size());
  return {elements[checked_position(c, -1, length, length)]};
}

}  // namespace at_op

// --- tensors to sequences and back ---

namespace split_op {

// The sizes of the parts: as given, or equal ones with a smaller last one.
std::vector<int64_t> part_sizes(const Call& c, int64_t length) {
  if (!c.has("split"))
    return zeros<int64_t>({length}, 1);
  const Tensor& split = c.in("split");
  std::vector<int64_t> sizes = as_ints(split);
  if (split.rank() == 0) {
    const int64_t size = sizes.front();
    if (size <= 0)
      throw user_error("sequence_split: split is {}, but must be at least 1", size);
    sizes = zeros<int64_t>({length / size}, size);
    if (length % size != 0)
      sizes.push_back(length % size);
    return sizes;
  }
  int64_t left = length;
  for (int64_t size : sizes) {
    if (size < 0 || size > left)
      throw user_error("sequence_split: {} elements do not split into [{}]", length, fmt::join(sizes, ","));
    left -= size;
  }
  if (left != 0)
    throw user_error("sequence_split: {} elements do not split into [{}]", length, fmt::join(sizes, ","));
  return sizes;
}

// The size that all parts are known to have.
Dim part_size(Value split, const Dim& length) {
  const auto sizes = split.known_ints();
  if (!sizes || sizes->empty() ||
      std::adjacent_find(sizes->begin(), sizes->end(), std::not_equal_to<>()) != sizes->end())
    return {};
  const int64_t size = sizes->front();
  if (split.rank() == 1)
    return size;
  return size > 0 && mod(length, size) == Dim(0) ? Dim(size) : Dim();
}

Types infer(const Node& n) {
  const Value x = n.in("x"), split = n.in("split");
  if (!x.shape().ranked() || (split && !split.shape().ranked()))
    return {Type::sequence(
        Type::tensor(x.dtype(), x.shape().ranked() ? Shape::unknown(x.rank()) : Shape::unranked()))};
  if (split && split.rank() > 1)
    throw operand_error(n, "split must be a number or a vector");
  if (split && split.known_dims())
    check_sizes(n, "split", *split.known_dims());
  const int64_t axis = checked_axis("sequence_split", n.attr("axis"), x.rank());
  std::vector<Dim> dims = x.shape().dims();
  if (split)
    dims[static_cast<size_t>(axis)] = part_size(split, x.dim(axis));
  else if (n.attr("keep_dims"))
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  return {Type::sequence(Type::tensor(x.dtype(), dims))};
}

Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const auto axis = static_cast<size_t>(checked_axis("sequence_split", c.attr("axis"), x.rank()));
  const Extents strides = row_major_strides(x.extents());
  Sequence parts;
  int64_t start = 0;
  for (int64_t size : part_sizes(c, x.extents()[axis])) {
    Extents extents = x.extents();
    extents[axis] = size;
    Tensor part = gather_strided(x, extents, strides, start * strides[axis]);
    if (!c.has("split") && !c.attr("keep_dims")) {
      extents.erase(extents.begin() + static_cast<int64_t>(axis));
      part = part.reshaped(extents);
    }
    parts.elements.emplace_back(std::move(part));
    start += size;
  }
  return {std::move(parts)};
}

}  // namespace split_op

namespace concat_op {

Types infer(const Node& n) {
  const Type& element = n.in("sequence").type().element();
  if (!element.is_tensor())
    throw operand_error(n, "only tensors can be joined");
  const auto& [dtype, shape] = element.as_tensor();
  if (!shape.ranked())
    return {element};
  std::vector<Dim> dims = shape.dims();
  if (n.attr("new_axis"))
    dims.insert(dims.begin() + checked_axis("sequence_concat", n.attr("axis"), shape.rank() + 1), Dim());
  else
    dims[static_cast<size_t>(checked_axis("sequence_concat", n.attr("axis"), shape.rank()))] = Dim();
  return {Type::tensor(dtype, dims)};
}

Data eval(const Call& c) {
  std::vector<Tensor> parts;
  for (const Datum& element : c.datum("sequence").sequence().elements)
    parts.push_back(element.tensor());
  if (parts.empty())
    throw user_error("sequence_concat: the sequence is empty");
  const int64_t axis = c.attr("axis");
  return {c.attr("new_axis") ? stack("sequence_concat", parts, axis)
                             : concatenate("sequence_concat", parts, axis)};
}

}  // namespace concat_op

// --- sequence_at of what a sequence was made of ---

UnsupportedError unknown_element() {
  return unsupported(
      "sequence_at: only an element at a known position of a split or of listed elements is known by itself");
}

// Part `position` of a sequence_split.
Value part_of(const Node& split, int64_t position) {
  const Value x = split.in("x"), sizes = split.in("split");
  const int64_t axis = split.attr("axis");
  if (!sizes) {
    const Value part = slice(x, axis, position, position == -1 ? kToTheEnd : position + 1);
    return split.attr("keep_dims") ? part : squeeze(part, {axis});
  }
  const auto known = sizes.known_ints();
  if (!known || (sizes.rank() == 0 && position < 0))
    throw unknown_element();
  if (sizes.rank() == 0)
    return slice(x, axis, position * known->front(), (position + 1) * known->front());
  const auto count = std::ssize(*known);
  position += position < 0 ? count : 0;
  if (position < 0 || position >= count)
    throw unknown_element();
  const int64_t start = std::accumulate(known->begin(), known->begin() + position, int64_t{0});
  return slice(x, axis, start, start + (*known)[static_cast<size_t>(position)]);
}

std::vector<Value> decompose_at(const Node& n) {
  const Node* made_by = n.in("sequence").node();
  const auto position = n.in("position").known_ints();
  if (made_by == nullptr || !position || position->size() != 1)
    throw unknown_element();
  if (made_by->is("sequence_split"))
    return {part_of(*made_by, position->front())};
  const std::vector<Value> elements =
      made_by->is("sequence_construct") ? made_by->ins("elements") : std::vector<Value>();
  const int64_t index = position->front() + (position->front() < 0 ? std::ssize(elements) : 0);
  if (index < 0 || index >= std::ssize(elements))
    throw unknown_element();
  return {elements[static_cast<size_t>(index)]};
}

// --- the declarations ---

OpDef at_a_position(std::string_view name, std::string_view doc, Arity arity, InferFunction infer,
                    EvalFunction eval) {
  return {.name = name,
          .doc = doc,
          .category = Category::Data,
          .operands = {{"sequence", "seq"}, {"position", "P", arity}},
          .results = {{"y", "any"}},
          .types = {{"P", kPositions}},
          .traits = {.takes_unranked = true},
          .infer = infer,
          .eval = eval};
}

Family make_ops() {
  OpDef at = at_a_position("sequence_at", "the element at a position", Arity::One, at_op::infer, at_op::eval);
  at.decompose = decompose_at;
  OpDef insert =
      at_a_position("sequence_insert",
                    "the sequence with one more element before a position; at its end, where none is given",
                    Arity::Optional, insert_op::infer, insert_op::eval);
  insert.operands.insert(insert.operands.begin() + 1, {"element", "any"});
  return {
      insert,
      at_a_position("sequence_erase",
                    "the sequence without the element at a position; the last, where none is given",
                    Arity::Optional, erase_op::infer, erase_op::eval),
      at,
      {.name = "sequence_empty",
       .doc = "a sequence of no elements",
       .category = Category::Data,
       .attributes = {{"element", AttributeKind::Type, "the type its elements would have"}},
       .results = {{"y", "any"}},
       .infer = [](const Node& n) -> Types { return {Type::sequence(n.attr("element"))}; },
       .eval = [](const Call&) -> Data { return {Sequence()}; }},
      {.name = "sequence_construct",
       .doc = "the sequence of its operands",
       .category = Category::Data,
       .operands = {{"elements", "any", Arity::Many}},
       .results = {{"y", "any"}},
       .traits = {.takes_unranked = true},
       .infer = construct_op::infer,
       .eval = construct_op::eval},
      {.name = "sequence_length",
       .doc = "the number of elements",
       .category = Category::Shape,
       .operands = {{"sequence", "seq"}},
       .results = {{"y", "i64"}},
       .traits = {.takes_unranked = true},
       .infer = [](const Node&) -> Types { return {Type::tensor(DType::I64, {})}; },
       .eval = [](const Call& c) -> Data {
         return {Tensor::scalar(static_cast<int64_t>(c.datum("sequence").sequence().elements.size()))};
       }},
      {.name = "sequence_split",
       .doc = "the parts of a tensor along an axis: of the given size or sizes, or one element each",
       .category = Category::Data,
       .operands = {{"x", "T"}, {"split", "S", Arity::Optional}},
       .attributes = {{"axis", AttributeKind::Int, "the axis along which x is cut", 0},
                      {"keep_dims", AttributeKind::Bool,
                       "whether parts of one element, where no split is given, keep the axis", true}},
       .results = {{"y", "any"}},
       .types = {{"S", kPositions}},
       .traits = {.takes_unranked = true},
       .infer = split_op::infer,
       .eval = split_op::eval},
      {.name = "sequence_concat",
       .doc = "the elements of a sequence joined along an axis, or stacked along a new one",
       .category = Category::Data,
       .operands = {{"sequence", "seq"}},
       .attributes = {{"axis", AttributeKind::Int, "the axis, of the result"},
                      {"new_axis", AttributeKind::Bool, "whether the axis is a new one", false}},
       .results = {{"y", "any"}},
       .traits = {.takes_unranked = true},
       .infer = concat_op::infer,
       .eval = concat_op::eval},
      {.name = "optional",
       .doc = "an optional that holds x",
       .category = Category::Data,
       .operands = {{"x", "any"}},
       .results = {{"y", "any"}},
       .traits = {.takes_unranked = true},
       .infer = [](const Node& n) -> Types { return {Type::optional(n.in("x").type())}; },
       .eval = [](const Call& c) -> Data { return {Optional{std::make_shared<const Datum>(c.datum("x"))}}; }},
      {.name = "optional_empty",
       .doc = "an optional that holds nothing",
       .category = Category::Data,
       .attributes = {{"element", AttributeKind::Type, "the type of what it would hold"}},
       .results = {{"y", "any"}},
       .infer = [](const Node& n) -> Types { return {Type::optional(n.attr("element"))}; },
       .eval = [](const Call&) -> Data { return {Optional()}; }},
      {.name = "optional_get",
       .doc = "what an optional holds; it must not be empty",
       .category = Category::Data,
       .operands = {{"x", "opt"}},
       .results = {{"y", "any"}},
       .traits = {.takes_unranked = true},
       .infer = [](const Node& n) -> Types { return {n.in("x").type().element()}; },
       .eval = [](const Call& c) -> Data {
         const Optional& optional = c.datum("x").optional();
         if (optional.element == nullptr)
           throw user_error("optional_get: the optional is empty");
         return {*optional.element};
       }},
      {.name = "optional_has",
       .doc = "whether an optional holds something",
       .category = Category::Data,
       .operands = {{"x", "opt"}},
       .results = {{"y", "bool"}},
       .traits = {.takes_unranked = true},
       .infer = [](const Node&) -> Types { return {Type::tensor(DType::Bool, {})}; },
       .eval = [](const Call& c) -> Data {
         return {Tensor::scalar(c.datum("x").optional().element != nullptr)};
       }},
  };
}

}  // namespace

const Family& sequence_ops() {
  static const Family ops = make_ops();
  return ops;
}

Value sequence_empty(Graph& graph, const Type& element) {
  return graph.create("sequence_empty", {}, {{"element", element}})->result();
}
Value sequence_construct(const std::vector<Value>& elements) {
  return elements.at(0).graph().create("sequence_construct", {{"elements", elements}})->result();
}
Value sequence_insert(Value sequence, Value element, Value position) {
  return sequence.graph()
      .create("sequence_insert", {{"sequence", sequence}, {"element", element}, {"position", position}})
      ->result();
}
Value sequence_erase(Value sequence, Value position) {
  return sequence.graph()
      .create("sequence_erase", {{"sequence", sequence}, {"position", position}})
      ->result();
}
Value sequence_at(Value sequence, Value position) {
  return sequence.graph().create("sequence_at", {{"sequence", sequence}, {"position", position}})->result();
}
Value sequence_length(Value sequence) {
  return sequence.graph().create("sequence_length", {{"sequence", sequence}})->result();
}
Value optional_empty(Graph& graph, const Type& element) {
  return graph.create("optional_empty", {}, {{"element", element}})->result();
}
Value optional_of(Value element) { return element.graph().create("optional", {{"x", element}})->result(); }
Value optional_get(Value optional) {
  return optional.graph().create("optional_get", {{"x", optional}})->result();
}
Value optional_has(Value optional) {
  return optional.graph().create("optional_has", {{"x", optional}})->result();
}

}  // namespace tenon
