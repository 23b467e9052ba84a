// sequence.cpp — ONNX sequences and optionals.
#include "ops/sequence.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/control.h"
#include "ops/data.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_sequence_empty(const NodeView& n) {
  return {sequence_empty(n.graph(), Type::tensor(n.dtype("dtype", DType::F32), Shape::unranked()))};
}
std::vector<Value> convert_sequence_construct(const NodeView& n) {
  const std::vector<Value> elements = n.ins();
  if (elements.empty())
    throw user_error("SequenceConstruct: it needs at least one input");
  return {sequence_construct(elements)};
}
std::vector<Value> convert_sequence_insert(const NodeView& n) {
  return {sequence_insert(n.in(0), n.in(1), n.maybe(2))};
}
std::vector<Value> convert_sequence_erase(const NodeView& n) { return {sequence_erase(n.in(0), n.maybe(1))}; }
std::vector<Value> convert_sequence_at(const NodeView& n) { return {sequence_at(n.in(0), n.in(1))}; }
std::vector<Value> convert_sequence_length(const NodeView& n) { return {sequence_length(n.in(0))}; }

std::vector<Value> convert_split_to_sequence(const NodeView& n) {
  return n.make("sequence_split", {{"x", n.in(0)}, {"split", n.maybe(1)}},
                {{"axis", n.integer("axis", 0)}, {"keep_dims", n.flag("keepdims", true)}});
}

std::vector<Value> convert_concat_from_sequence(const NodeView& n) {
  return n.make("sequence_concat", {{"sequence", n.in(0)}},
                {{"axis", n.integer("axis")}, {"new_axis", n.flag("new_axis", false)}});
}

// The type that covers what a graph gives for any element: only sizes that are plain numbers are the same for
// all.
Type for_any_element(const Type& type) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return type;
  std::vector<Dim> dims = type.as_tensor().shape.dims();
  for (Dim& dim : dims)
    dim = dim.is_constant() ? dim : Dim();
  return Type::tensor(type.as_tensor().dtype, dims);
}

// A loop over the elements of the first input that appends what the body gives to the sequences it carries.
// Further sequences are taken element by element too; tensors come in whole.
std::vector<Value> convert_sequence_map(const NodeView& n) {
  const std::vector<Value> inputs = n.ins();
  if (!n.in(0).type().is_sequence())
    throw user_error("SequenceMap: input 0 must be a sequence, but is {}", n.in(0).type());
  std::vector<RegionInput> element_types;
  for (Value input : inputs)
    element_types.emplace_back(input.type().is_sequence() ? input.type().element() : input.type());
  Captures captures;
  const Region body = n.region(n.graph_proto("body"), element_types, captures);

  Loop loop = {.trip_count = sequence_length(n.in(0)), .captured = inputs};
  loop.captured.insert(loop.captured.end(), captures.outer.begin(), captures.outer.end());
  for (const Type& type : body->output_types())
    loop.carried.push_back(sequence_empty(n.graph(), for_any_element(type)));

  Region iteration = n.graph().make_region("map");
  const Value number = iteration->add_input(Type::tensor(DType::I64, {}), "iteration");
  std::vector<Value> outputs, arguments;
  for (Value sequence : loop.carried)
    outputs.push_back(iteration->add_input(sequence.type(), ""));
  for (Value captured : loop.captured) {
    const Value whole = iteration->add_input(captured.type(), captured.name());
    const bool element = arguments.size() < inputs.size() && captured.type().is_sequence();
    arguments.push_back(element ? sequence_at(whole, number) : whole);
  }
  const std::vector<Value> results = iteration->inline_graph(*body, arguments);
  for (size_t i = 0; i < results.size(); ++i)
    outputs[i] = sequence_insert(outputs[i], results[i]);
  outputs.insert(outputs.begin(), constant(*iteration, Tensor::scalar(true)));
  iteration->set_outputs(outputs);
  return while_loop(n.graph(), loop, std::move(iteration));
}

std::vector<Value> convert_optional(const NodeView& n) {
  const Value element = n.maybe(0);
  return {element ? optional_of(element) : optional_empty(n.graph(), n.type("type"))};
}

// From opset 18 on, a value that is no optional at all is there, and an input that is left out is not.
std::vector<Value> convert_optional_has_element(const NodeView& n) {
  const Value x = n.maybe(0);
  if (x && x.type().is_optional())
    return {optional_has(x)};
  return {constant(n.graph(), Tensor::scalar(bool(x)))};
}

std::vector<Value> convert_optional_get_element(const NodeView& n) {
  const Value x = n.in(0);
  return {x.type().is_optional() ? optional_get(x) : x};
}

}  // namespace

const Conversions& sequence_conversions() {
  static const Conversions conversions = {
      {"ConcatFromSequence", convert_concat_from_sequence},
      {"Optional", convert_optional},
      {"OptionalGetElement", convert_optional_get_element},
      {"OptionalHasElement", convert_optional_has_element},
      {"SequenceAt", convert_sequence_at},
      {"SequenceConstruct", convert_sequence_construct},
      {"SequenceEmpty", convert_sequence_empty},
      {"SequenceErase", convert_sequence_erase},
      {"SequenceInsert", convert_sequence_insert},
      {"SequenceLength", convert_sequence_length},
      {"SequenceMap", convert_sequence_map},
      {"SplitToSequence", convert_split_to_sequence},
  };
  return conversions;
}

}  // namespace tenon::onnx
