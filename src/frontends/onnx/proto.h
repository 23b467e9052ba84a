// proto.h — the messages of an ONNX file as plain structs, decoded from the field numbers of onnx.proto3
// (ONNX 1.23).
//
// Names, text and tensor bytes are views into the mapped file; what we have no use for (comments, training,
// devices, annotations) is skipped, whatever it holds. A field that is absent has the value zero or is empty,
// as the format defines.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"

namespace tenon::onnx {

struct StringStringEntry {
  std::string_view key, value;
};
using StringStringEntries = std::vector<StringStringEntry>;

struct OperatorSetId {
  std::string_view domain;
  int64_t version = 0;
};

enum class DataLocation : int32_t { Default = 0, External = 1 };

struct TensorProto {
  struct Segment {
    int64_t begin = 0, end = 0;
  };

  std::string_view name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  DataLocation data_location = DataLocation::Default;
  std::optional<Segment> segment;
  std::span<const std::byte> raw_data;
  // The whole message: float_data, int32_data and their like are read from here when the tensor is converted,
  // so that no weight is held twice.
  std::span<const std::byte> message;
  StringStringEntries external_data;
};

struct SparseTensorProto {
  TensorProto values, indices;
  std::vector<int64_t> dims;
};

struct Dimension {
  std::optional<int64_t> value;
  std::string_view param;  // a symbol's name; with no value either, nothing is known
};

struct ShapeProto {
  std::vector<Dimension> dim;
};

struct TypeProto {
  enum class Kind : uint8_t { Unset, Tensor, SparseTensor, Sequence, Optional, Map, Opaque };

  Kind kind = Kind::Unset;
  int32_t elem_type = 0;            // of Tensor and SparseTensor; the key type of Map
  std::optional<ShapeProto> shape;  // of Tensor and SparseTensor; absent: the rank is unknown
  std::shared_ptr<const TypeProto>
      element;  // of Sequence and Optional; the value type of Map; never null there
};

struct ValueInfoProto {
  std::string_view name;
  TypeProto type;
};

enum class AttributeType : int32_t {
  Undefined = 0,  // only beside ref_attr_name: otherwise the type is told by the value
  Float = 1,
  Int = 2,
  String = 3,
  Tensor = 4,
  Graph = 5,
  Floats = 6,
  Ints = 7,
  Strings = 8,
  Tensors = 9,
  Graphs = 10,
  SparseTensor = 11,
  SparseTensors = 12,
  Type = 13,
  Types = 14,
};

struct GraphProto;

struct AttributeProto {
  std::span<const std::byte> message;  // the whole of it, to be written again
  std::string_view name, ref_attr_name;
  AttributeType type = AttributeType::Undefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  // A single tensor, graph, sparse tensor or type is the only element of its list.
  std::vector<TensorProto> tensors;
  std::vector<GraphProto> graphs;
  std::vector<SparseTensorProto> sparse_tensors;
  std::vector<TypeProto> types;
};

struct NodeProto {
  std::vector<std::string_view> input, output;
  std::string_view name, op_type, domain, overload;
  std::vector<AttributeProto> attribute;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> node;
  std::vector<TensorProto> initializer;
  std::vector<SparseTensorProto> sparse_initializer;
  std::vector<ValueInfoProto> input, output, value_info;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> input, output;
  std::vector<AttributeProto> attribute_proto;  // attributes with a default
  std::vector<NodeProto> node;
  std::vector<OperatorSetId> opset_import;
};

struct ModelProto {
  int64_t ir_version = 0;
  std::vector<OperatorSetId> opset_import;
  GraphProto graph;
  std::vector<FunctionProto> functions;
};

// SequenceProto and OptionalProto, which have the same fields; an optional holds at most one element.
struct CollectionProto {
  enum class ElementKind : int32_t {
    Undefined = 0,
    Tensor = 1,
    SparseTensor = 2,
    Sequence = 3,
    Map = 4,
    Optional = 5
  };

  std::string_view name;
  ElementKind elem_type = ElementKind::Undefined;  // of the list that counts
  std::vector<TensorProto> tensors;
  std::vector<CollectionProto> sequences, optionals;
};

// The structs view `bytes`, which must outlive them. Errors: "byte 17: …".
ModelProto decode_model(std::span<const std::byte> bytes);
TensorProto decode_tensor(std::span<const std::byte> bytes);
CollectionProto decode_collection(std::span<const std::byte> bytes);

// A model and the mapped file that its structs view.
struct Model {
  std::shared_ptr<const MappedFile> file;
  ModelProto proto;
};

// Errors: "FILE: not an ONNX model: byte 17: …", and of one that is cut off: "FILE: truncated, the file ends
// in …".
Model read_model(const std::filesystem::path& path);
Model read_model(std::shared_ptr<const MappedFile> file);

}  // namespace tenon::onnx
