#include "frontends/onnx/proto.h"

#include "base/mistaken_file.h"
#include "frontends/onnx/fields.h"
#include "frontends/onnx/wire.h"

namespace tenon::onnx {
namespace {

// A message is decoded by saying which field number goes to which member; the member's type says how. Other
// numbers are skipped: a newer ONNX, or nothing we use.
template <class Target>
struct Is {
  uint32_t number;
  Target& target;
};
template <class Target>
Is(int, Target&) -> Is<Target>;

void decode_message(WireReader reader, StringStringEntry& entry);
void decode_message(WireReader reader, OperatorSetId& set);
void decode_message(WireReader reader, TensorProto::Segment& segment);
void decode_message(WireReader reader, TensorProto& tensor);
void decode_message(WireReader reader, SparseTensorProto& sparse);
void decode_message(WireReader reader, Dimension& dimension);
void decode_message(WireReader reader, ShapeProto& shape);
void decode_message(WireReader reader, TypeProto& type);
void decode_message(WireReader reader, ValueInfoProto& value);
void decode_message(WireReader reader, AttributeProto& attribute);
void decode_message(WireReader reader, NodeProto& node);
void decode_message(WireReader reader, GraphProto& graph);
void decode_message(WireReader reader, FunctionProto& function);
void decode_message(WireReader reader, ModelProto& model);
void decode_message(WireReader reader, CollectionProto& collection);

void decode(const Field& field, int64_t& value) { value = field.integer(); }
void decode(const Field& field, int32_t& value) { value = field.integer32(); }
void decode(const Field& field, float& value) { value = field.real(); }
void decode(const Field& field, std::string_view& value) { value = field.string(); }
void decode(const Field& field, std::span<const std::byte>& value) { value = field.bytes(); }
void decode(const Field& field, std::vector<int64_t>& values) { field.append_to(values); }
void decode(const Field& field, std::vector<float>& values) { field.append_to(values); }

// An enum whose values are 0 to `last`.
template <class Enum>
Enum decode_enum(const Field& field, Enum last, const char* what) {
  const int64_t value = field.integer();
  if (value < 0 || value > static_cast<int64_t>(last))
    throw field.error("{} {} is unknown, wanted 0 to {}", what, value, static_cast<int64_t>(last));
  return static_cast<Enum>(value);
}

void decode(const Field& field, DataLocation& value) {
  value = decode_enum(field, DataLocation::External, "data location");
}
void decode(const Field& field, AttributeType& value) {
  value = decode_enum(field, AttributeType::Types, "attribute type");
}
void decode(const Field& field, CollectionProto::ElementKind& value) {
  value = decode_enum(field, CollectionProto::ElementKind::Optional, "element type");
}

template <class Message>
void decode(const Field& field, Message& message) {
  decode_message(field.message(), message);
}

template <class Value>
void decode(const Field& field, std::optional<Value>& value) {
  if (!value)
    value = Value();
  decode(field, *value);
}

template <class Value>
void decode(const Field& field, std::vector<Value>& values) {
  decode(field, values.emplace_back());
}

void decode(const Field& field, std::shared_ptr<const TypeProto>& pointer) {
  auto type = std::make_shared<TypeProto>();
  decode(field, *type);
  pointer = std::move(type);
}

template <class... Targets>
void decode_fields(WireReader reader, Is<Targets>... members) {
  while (const auto field = reader.next_field())
    ((field->number() == members.number ? decode(*field, members.target) : void()), ...);
}

void decode_message(WireReader reader, StringStringEntry& entry) {
  decode_fields(reader, Is{1, entry.key}, Is{2, entry.value});
}

void decode_message(WireReader reader, OperatorSetId& set) {
  decode_fields(reader, Is{1, set.domain}, Is{2, set.version});
}

void decode_message(WireReader reader, TensorProto::Segment& segment) {
  decode_fields(reader, Is{1, segment.begin}, Is{2, segment.end});
}

void decode_message(WireReader reader, TensorProto& tensor) {
  tensor.message = reader.rest();
  decode_fields(reader, Is{tensor_field::dims, tensor.dims}, Is{tensor_field::data_type, tensor.data_type},
                Is{tensor_field::segment, tensor.segment}, Is{tensor_field::name, tensor.name},
                Is{tensor_field::raw_data, tensor.raw_data},
                Is{tensor_field::external_data, tensor.external_data},
                Is{tensor_field::data_location, tensor.data_location});
}

void decode_message(WireReader reader, SparseTensorProto& sparse) {
  decode_fields(reader, Is{1, sparse.values}, Is{2, sparse.indices}, Is{3, sparse.dims});
}

void decode_message(WireReader reader, Dimension& dimension) {
  decode_fields(reader, Is{1, dimension.value}, Is{2, dimension.param});
}

void decode_message(WireReader reader, ShapeProto& shape) { decode_fields(reader, Is{1, shape.dim}); }

void decode_message(WireReader reader, TypeProto& type) {
  using Kind = TypeProto::Kind;
  const WireReader start = reader;
  while (const auto field = reader.next_field()) {
    switch (field->number()) {
      case 1:
      case 8:
        type.kind = field->number() == 1 ? Kind::Tensor : Kind::SparseTensor;
        decode_fields(field->message(), Is{1, type.elem_type}, Is{2, type.shape});
        break;
      case 4:
      case 9:
        type.kind = field->number() == 4 ? Kind::Sequence : Kind::Optional;
        decode_fields(field->message(), Is{1, type.element});
        break;
      case 5:
        type.kind = Kind::Map;
        decode_fields(field->message(), Is{1, type.elem_type}, Is{2, type.element});
        break;
      case 7:
        type.kind = Kind::Opaque;
        break;
    }
  }
  const bool wants_element =
      type.kind == Kind::Sequence || type.kind == Kind::Optional || type.kind == Kind::Map;
  if (wants_element && type.element == nullptr)
    throw start.error("a sequence, optional or map type without the type of its elements");
}

void decode_message(WireReader reader, ValueInfoProto& value) {
  decode_fields(reader, Is{1, value.name}, Is{2, value.type});
}

// The values of an attribute that are not decoded in place: whether one is there may say of what type it is.
struct AttributeValues {
  std::optional<float> f;
  std::optional<int64_t> i;
  std::optional<std::span<const std::byte>> s;
  std::optional<TensorProto> tensor;
  std::optional<GraphProto> graph;
  std::optional<SparseTensorProto> sparse_tensor;
  std::optional<TypeProto> type;
  std::vector<std::span<const std::byte>> strings;
};

// The oldest files leave the type out, and the value tells it. A writer may leave out a value that is zero or
// an empty list.
void settle_type(const WireReader& reader, const AttributeValues& given, AttributeProto& attribute) {
  const std::pair<AttributeType, bool> values[] = {
      {AttributeType::Float, given.f.has_value()},
      {AttributeType::Int, given.i.has_value()},
      {AttributeType::String, given.s.has_value()},
      {AttributeType::Tensor, given.tensor.has_value()},
      {AttributeType::Graph, given.graph.has_value()},
      {AttributeType::Floats, !attribute.floats.empty()},
      {AttributeType::Ints, !attribute.ints.empty()},
      {AttributeType::Strings, !given.strings.empty()},
      {AttributeType::Tensors, !attribute.tensors.empty()},
      {AttributeType::Graphs, !attribute.graphs.empty()},
      {AttributeType::SparseTensor, given.sparse_tensor.has_value()},
      {AttributeType::SparseTensors, !attribute.sparse_tensors.empty()},
      {AttributeType::Type, given.type.has_value()},
      {AttributeType::Types, !attribute.types.empty()},
  };
  for (const auto& [held, is_held] : values) {
    if (is_held && attribute.type == AttributeType::Undefined)
      attribute.type = held;
    if (is_held && attribute.type != held)
      throw reader.error("attribute \"{}\" has type {} and a value of type {}", attribute.name,
                         static_cast<int>(attribute.type), static_cast<int>(held));
    const bool is_message = held == AttributeType::Tensor || held == AttributeType::Graph ||
                            held == AttributeType::SparseTensor || held == AttributeType::Type;
    if (!is_held && is_message && attribute.type == held && attribute.ref_attr_name.empty())
      throw reader.error("attribute \"{}\" has type {} and no value", attribute.name,
                         static_cast<int>(attribute.type));
  }
}

template <class Message>
void append(std::optional<Message>& given, std::vector<Message>& messages) {
  if (given)
    messages.push_back(std::move(*given));
}

void decode_message(WireReader reader, AttributeProto& attribute) {
  attribute.message = reader.rest();
  AttributeValues given;
  decode_fields(reader, Is{1, attribute.name}, Is{2, given.f}, Is{3, given.i}, Is{4, given.s},
                Is{5, given.tensor}, Is{6, given.graph}, Is{7, attribute.floats}, Is{8, attribute.ints},
                Is{9, given.strings}, Is{10, attribute.tensors}, Is{11, attribute.graphs}, Is{14, given.type},
                Is{15, attribute.types}, Is{20, attribute.type}, Is{21, attribute.ref_attr_name},
                Is{22, given.sparse_tensor}, Is{23, attribute.sparse_tensors});
  settle_type(reader, given, attribute);
  attribute.f = given.f.value_or(0);
  attribute.i = given.i.value_or(0);
  if (given.s)
    attribute.s = as_text(*given.s);
  for (const auto string : given.strings)
    attribute.strings.push_back(as_text(string));
  append(given.tensor, attribute.tensors);
  append(given.graph, attribute.graphs);
  append(given.sparse_tensor, attribute.sparse_tensors);
  append(given.type, attribute.types);
}

void decode_message(WireReader reader, NodeProto& node) {
  decode_fields(reader, Is{1, node.input}, Is{2, node.output}, Is{3, node.name}, Is{4, node.op_type},
                Is{5, node.attribute}, Is{7, node.domain}, Is{8, node.overload});
}

void decode_message(WireReader reader, GraphProto& graph) {
  decode_fields(reader, Is{1, graph.node}, Is{2, graph.name}, Is{5, graph.initializer}, Is{11, graph.input},
                Is{12, graph.output}, Is{13, graph.value_info}, Is{15, graph.sparse_initializer});
}

void decode_message(WireReader reader, FunctionProto& function) {
  decode_fields(reader, Is{1, function.name}, Is{4, function.input}, Is{5, function.output},
                Is{7, function.node}, Is{9, function.opset_import}, Is{10, function.domain},
                Is{11, function.attribute_proto}, Is{13, function.overload});
}

void decode_message(WireReader reader, ModelProto& model) {
  std::optional<GraphProto> graph;
  decode_fields(reader, Is{1, model.ir_version}, Is{7, graph}, Is{8, model.opset_import},
                Is{25, model.functions});
  if (!graph)
    throw user_error("byte {}: the file ends without a graph", reader.rest().size());
  model.graph = std::move(*graph);
}

void decode_message(WireReader reader, CollectionProto& collection) {
  decode_fields(reader, Is{1, collection.name}, Is{2, collection.elem_type}, Is{3, collection.tensors},
                Is{5, collection.sequences}, Is{7, collection.optionals});
}

template <class Message>
Message decode_all(std::span<const std::byte> bytes) {
  Message message;
  decode_message(WireReader(bytes), message);
  return message;
}

// What people take for a model by mistake, told by how it starts.
std::string_view hint_for(std::span<const std::byte> bytes) {
  if (as_text(bytes).starts_with("PK\3\4"))
    return "\n  hint: this is a zip archive; if torch.export made it, its name should end in .pt2";
  if (as_text(bytes).starts_with("graph "))
    return "\n  hint: this looks like Tenon's text form, whose files end in .tenon";
  if (const std::string_view hint = hint_at_content(bytes); !hint.empty())
    return hint;
  return looks_like_text(bytes) ? "\n  hint: this is text, and ONNX models are not" : "";
}

// What a field of the model holds; empty for those that models do not have.
std::string_view part_of_model(uint32_t field) {
  if (field == 7)
    return "the graph";
  if (field == 8)
    return "the opsets";
  if (field == 25)
    return "the functions";
  return field <= 6 || field == 14 || field == 20 || field == 26 ? "what describes the model" : "";
}

UserError not_a_model(const MappedFile& file, const UserError& error) {
  const std::string path = file.path().string();
  const auto* truncated = dynamic_cast<const TruncatedError*>(&error);
  const std::string_view part = truncated == nullptr ? "" : part_of_model(truncated->field());
  const std::string_view hint = hint_for(file.bytes());
  if (part.empty() || !hint.empty())
    return user_error("{}: not an ONNX model: {}{}", path, error.what(), hint);
  return user_error("{}: truncated, the file ends in the middle of {}: {}", path, part, error.what());
}

}  // namespace

ModelProto decode_model(std::span<const std::byte> bytes) { return decode_all<ModelProto>(bytes); }

TensorProto decode_tensor(std::span<const std::byte> bytes) { return decode_all<TensorProto>(bytes); }

CollectionProto decode_collection(std::span<const std::byte> bytes) {
  return decode_all<CollectionProto>(bytes);
}

Model read_model(const std::filesystem::path& path) { return read_model(MappedFile::open(path)); }

Model read_model(std::shared_ptr<const MappedFile> file) {
  try {
    ModelProto proto = decode_model(file->bytes());
    return {std::move(file), std::move(proto)};
  } catch (const UserError& error) {
    throw not_a_model(*file, error);
  }
}

}  // namespace tenon::onnx
