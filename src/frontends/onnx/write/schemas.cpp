#include "frontends/onnx/write/schemas.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/signatures.h"
#include "frontends/onnx/write/schema_table.h"

namespace tenon::onnx {
namespace {

// Ops whose older versions mean something else by the same inputs and attributes.
struct Changed {
  std::string_view op_type;
  int64_t since;
};
constexpr Changed kChanged[] = {{"GridSample", 20}, {"GroupNormalization", 21}, {"RoiAlign", 16}};

// Values of attributes that came later than their attributes, or meant something else before.
struct NewValue {
  std::string_view op_type, attribute;
  Attribute value;
  int64_t since;
};
const std::vector<NewValue>& new_values() {
  static const std::vector<NewValue> values = {
      {"AveragePool", "ceil_mode", true, 19},
      {"Pad", "mode", "wrap", 19},
      {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
      {"ScatterElements", "reduction", "max", 18},
      {"ScatterElements", "reduction", "min", 18},
      {"ScatterND", "reduction", "max", 18},
      {"ScatterND", "reduction", "min", 18},
  };
  return values;
}

const std::unordered_map<std::string_view, std::vector<const Schema*>>& schemas_by_op() {
  static const auto by_op = [] {
    std::unordered_map<std::string_view, std::vector<const Schema*>> made;
    for (const Schema& schema : all_schemas())
      made[schema.op_type].push_back(&schema);
    return made;
  }();
  return by_op;
}

const Schema* find_schema(std::string_view op_type, int64_t opset) {
  const auto it = schemas_by_op().find(op_type);
  CHECK(it != schemas_by_op().end(), "{} is written, but has no schema", op_type);
  const Schema* found = nullptr;
  for (const Schema* schema : it->second)
    if (schema->since <= opset)
      found = schema;
  return found;
}

Kinds kind_of(const Type& type) {
  if (!type.is_tensor())
    return type.is_sequence() ? kSequence : kOptional;
  return Kinds{1} << static_cast<unsigned>(type.as_tensor().dtype);
}

bool is_allowed(const std::vector<Kinds>& kinds, size_t place, const Type& type) {
  return !kinds.empty() && (kinds[std::min(place, kinds.size() - 1)] & kind_of(type)) != 0;
}

bool are_allowed(const Schema& schema, const OnnxCall& call, const Types& outputs) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.inputs[i].value && !is_allowed(schema.inputs, i, call.inputs[i].value.type()))
      return false;
  const std::vector<Kinds>& given = schema.outputs.empty() ? schema.inputs : schema.outputs;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!is_allowed(given, i, outputs[i]))
      return false;
  return true;
}

// The oldest opset whose ops of this name mean by it what ours do.
int64_t first_opset(const OnnxCall& call, const OpName& name) {
  if (!name.domain.empty())
    return 1;
  const auto* changed = std::ranges::find(kChanged, name.op_type, &Changed::op_type);
  int64_t opset = changed == std::end(kChanged) ? kOldestWritten : changed->since;
  for (const NewValue& known : new_values())
    if (known.op_type == name.op_type &&
        std::ranges::any_of(call.attributes, [&](const NamedAttribute& attribute) {
          return attribute.name == known.attribute && attribute.value == known.value;
        }))
      opset = std::max(opset, known.since);
  return opset;
}

bool has_in(const OnnxCall& call, const Types& outputs, const OpName& name, int64_t opset) {
  std::vector<std::string_view> attributes;
  for (const NamedAttribute& attribute : call.attributes)
    attributes.push_back(attribute.name);
  const Schema* schema = find_schema(name.op_type, opset);
  return schema != nullptr && allows(name.domain, name.op_type, opset, call.inputs.size(), attributes) &&
         are_allowed(*schema, call, outputs);
}

}  // namespace

OpName split_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? OpName{"", name} : OpName{name.substr(0, dot), name.substr(dot + 1)};
}

OpName split_name(const OnnxCall& call) {
  return call.foreign ? OpName{call.foreign->domain, call.name} : split_name(std::string_view(call.name));
}

int64_t ir_version_of(int64_t opset) {
  constexpr int64_t from_opset[] = {13, 15, 19, 21, 23, 24, 25};  // IR versions 7, 8, …
  return 6 + std::count_if(std::begin(from_opset), std::end(from_opset),
                           [&](int64_t from) { return from <= opset; });
}

std::optional<int64_t> oldest_opset(const OnnxCall& call, const Types& outputs) {
  const OpName name = split_name(call);
  for (int64_t opset = first_opset(call, name); opset <= kNewestOpset; ++opset)
    if (has_in(call, outputs, name, opset))
      return opset;
  return std::nullopt;
}

}  // namespace tenon::onnx
