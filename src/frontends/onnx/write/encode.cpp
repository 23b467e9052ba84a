#include "frontends/onnx/write/encode.h"

#include "frontends/onnx/fields.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/tensor_proto.h"
#include "frontends/onnx/wire.h"
#include "frontends/onnx/write/schemas.h"

namespace tenon::onnx {
namespace {

// Field numbers, by message.
namespace model_field {
constexpr uint32_t ir_version = 1, producer_name = 2, graph = 7, opset_import = 8;
}
namespace opset_field {
constexpr uint32_t domain = 1, version = 2;
}
namespace graph_field {
constexpr uint32_t node = 1, name = 2, initializer = 5, input = 11, output = 12, value_info = 13;
}
namespace node_field {
constexpr uint32_t input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7;
}
namespace attribute_field {
constexpr uint32_t name = 1, f = 2, i = 3, s = 4, t = 5, g = 6, floats = 7, ints = 8, strings = 9, tp = 14,
                   type = 20;
}
namespace entry_field {
constexpr uint32_t key = 1, value = 2;
}
namespace value_field {
constexpr uint32_t name = 1, type = 2;
}
namespace type_field {
constexpr uint32_t tensor = 1, sequence = 4, optional = 9, elem_type = 1, shape = 2;
}
namespace shape_field {
constexpr uint32_t dim = 1, value = 1, param = 2;
}

// --- types

std::string encode_dim(const Dim& dim) {
  WireWriter writer;
  if (const auto size = dim.constant())
    writer.put(shape_field::value, *size);
  else if (dim.is_symbol())
    writer.put(shape_field::param, dim.symbols().front());
  else if (!dim.is_unknown())
    writer.put(shape_field::param, dim.to_string());
  return writer.message();
}

std::string encode_type(const Type& type) {
  WireWriter writer, inside;
  if (!type.is_tensor()) {
    inside.put(type_field::elem_type, encode_type(type.element()));
    writer.put(type.is_sequence() ? type_field::sequence : type_field::optional, inside.message());
    return writer.message();
  }
  const auto& [dtype, shape] = type.as_tensor();
  inside.put(type_field::elem_type, int64_t{to_data_type(dtype)});
  if (shape.ranked()) {
    WireWriter dims;
    for (const Dim& dim : shape.dims())
      dims.put(shape_field::dim, encode_dim(dim));
    inside.put(type_field::shape, dims.message());
  }
  writer.put(type_field::tensor, inside.message());
  return writer.message();
}

std::string encode_value(const DraftValue& value) {
  WireWriter writer;
  writer.put(value_field::name, value.name);
  writer.put(value_field::type, encode_type(value.type));
  return writer.message();
}

// --- attributes

std::string encode_graph(const DraftGraph& graph, const std::vector<std::string>& initializers);

void put_type(WireWriter& writer, AttributeType type) {
  writer.put(attribute_field::type, static_cast<int64_t>(type));
}

void put_integer(WireWriter& writer, int64_t value) {
  writer.put(attribute_field::i, value);
  put_type(writer, AttributeType::Int);
}

std::string encode_attribute(const NamedAttribute& attribute) {
  const Attribute& value = attribute.value;
  WireWriter writer;
  writer.put(attribute_field::name, attribute.name);
  switch (value.kind()) {
    case AttributeKind::Bool:
      put_integer(writer, value.as<bool>() ? 1 : 0);
      break;
    case AttributeKind::Int:
      put_integer(writer, value);
      break;
    case AttributeKind::DType:
      put_integer(writer, to_data_type(value));
      break;
    case AttributeKind::Float:
      writer.put_float(attribute_field::f, static_cast<float>(value.as<double>()));
      put_type(writer, AttributeType::Float);
      break;
    case AttributeKind::String:
      writer.put(attribute_field::s, std::string_view(value.as<std::string>()));
      put_type(writer, AttributeType::String);
      break;
    case AttributeKind::Ints:
      for (const int64_t i : value.as<Attribute::Ints>())
        writer.put(attribute_field::ints, i);
      put_type(writer, AttributeType::Ints);
      break;
    case AttributeKind::Floats:
      for (const double f : value.as<Attribute::Floats>())
        writer.put_float(attribute_field::floats, static_cast<float>(f));
      put_type(writer, AttributeType::Floats);
      break;
    case AttributeKind::Strings:
      for (const std::string& s : value.as<Attribute::Strings>())
        writer.put(attribute_field::strings, std::string_view(s));
      put_type(writer, AttributeType::Strings);
      break;
    case AttributeKind::Type:
      writer.put(attribute_field::tp, encode_type(value));
      put_type(writer, AttributeType::Type);
      break;
    case AttributeKind::Literal:
      writer.put(attribute_field::t, write_tensor("", value.as<Literal>().tensor()));
      put_type(writer, AttributeType::Tensor);
      break;
  }
  return writer.message();
}

std::string encode_nested(std::string_view name, const DraftGraph& graph) {
  WireWriter writer;
  writer.put(attribute_field::name, name);
  writer.put(attribute_field::g, encode_graph(graph, {}));
  put_type(writer, AttributeType::Graph);
  return writer.message();
}

// --- nodes and graphs

std::string encode_node(const DraftNode& node) {
  WireWriter writer;
  for (const std::string& input : node.inputs)
    writer.put(node_field::input, std::string_view(input));
  for (const std::string& output : node.outputs)
    writer.put(node_field::output, std::string_view(output));
  writer.put(node_field::name, std::string_view(node.name));
  writer.put(node_field::op_type, std::string_view(node.op_type));
  for (const NamedAttribute& attribute : node.attributes)
    writer.put(node_field::attribute, encode_attribute(attribute));
  for (const auto& [name, graph] : node.graphs)
    writer.put(node_field::attribute, encode_nested(name, *graph));
  for (const std::string& message : node.messages)
    writer.put(node_field::attribute, message);
  if (!node.domain.empty())
    writer.put(node_field::domain, std::string_view(node.domain));
  return writer.message();
}

std::string encode_graph(const DraftGraph& graph, const std::vector<std::string>& initializers) {
  WireWriter writer;
  for (const DraftNode& node : graph.nodes)
    writer.put(graph_field::node, encode_node(node));
  writer.put(graph_field::name, std::string_view(graph.name));
  for (const std::string& initializer : initializers)
    writer.put(graph_field::initializer, initializer);
  for (const DraftValue& input : graph.inputs)
    writer.put(graph_field::input, encode_value(input));
  for (const DraftValue& output : graph.outputs)
    writer.put(graph_field::output, encode_value(output));
  for (const DraftValue& value : graph.values)
    writer.put(graph_field::value_info, encode_value(value));
  return writer.message();
}

std::string encode_opset(std::string_view domain, int64_t version) {
  WireWriter writer;
  writer.put(opset_field::domain, domain);
  writer.put(opset_field::version, version);
  return writer.message();
}

// --- weights

void put_head(WireWriter& writer, const DraftInitializer& weight) {
  for (const int64_t extent : weight.extents)
    writer.put(tensor_field::dims, extent);
  writer.put(tensor_field::data_type, int64_t{to_data_type(weight.value.dtype())});
  writer.put(tensor_field::name, weight.name);
}

std::string encode_entry(std::string_view key, std::string_view value) {
  WireWriter writer;
  writer.put(entry_field::key, key);
  writer.put(entry_field::value, value);
  return writer.message();
}

}  // namespace

std::string encode_head(const DraftInitializer& weight) {
  WireWriter writer;
  put_head(writer, weight);
  return writer.message();
}

std::string encode_weight(const DraftInitializer& weight) {
  if (weight.tensor)
    return write_tensor(weight.name, *weight.tensor);
  if (weight.value.dtype() == DType::String)
    return write_tensor(weight.name, compute(weight.value));
  WireWriter writer;
  put_head(writer, weight);
  std::string elements;
  with_packed(weight.value, [&](std::span<const std::byte> bytes) { elements += as_text(bytes); });
  writer.put(tensor_field::raw_data, elements);
  return writer.message();
}

std::string encode_weight(const DraftInitializer& weight, const ExternalData& elements) {
  WireWriter writer;
  put_head(writer, weight);
  writer.put(tensor_field::external_data, encode_entry("location", elements.location));
  writer.put(tensor_field::external_data, encode_entry("offset", std::to_string(elements.offset)));
  writer.put(tensor_field::external_data, encode_entry("length", std::to_string(elements.size)));
  writer.put(tensor_field::data_location, static_cast<int64_t>(DataLocation::External));
  return writer.message();
}

std::string encode_model(const Draft& draft, const std::vector<std::string>& initializers) {
  WireWriter writer;
  writer.put(model_field::ir_version, ir_version_of(draft.opset));
  writer.put(model_field::producer_name, std::string_view("tenon"));
  writer.put(model_field::graph, encode_graph(draft.graph, initializers));
  writer.put(model_field::opset_import, encode_opset("", draft.opset));
  for (const auto& [domain, version] : draft.other_opsets)
    writer.put(model_field::opset_import, encode_opset(domain, version));
  return writer.message();
}

}  // namespace tenon::onnx
