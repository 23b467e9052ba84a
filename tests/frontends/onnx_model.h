// onnx_model.h — ONNX models for tests, encoded field by field from the field numbers of onnx.proto3.
//
// Every function gives the bytes of one message; lists of messages are lists of strings.
#pragma once

#include <cstring>
#include <string>
#include <variant>
#include <vector>

namespace tenon::onnx::encode {

using Bytes = std::string;
using Names = std::vector<std::string>;
using Messages = std::vector<Bytes>;

enum ElementType : int {
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11
};

inline Bytes varint(uint64_t value) {
  Bytes bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(0x80 + value % 0x80);
  return bytes + static_cast<char>(value);
}
inline Bytes number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) * 8) + varint(static_cast<uint64_t>(value));
}
inline Bytes block(int field, const Bytes& content) {
  return varint(static_cast<uint64_t>(field) * 8 + 2) + varint(content.size()) + content;
}
inline Bytes blocks(int field, const Messages& contents) {
  Bytes bytes;
  for (const Bytes& content : contents)
    bytes += block(field, content);
  return bytes;
}
template <class T>
Bytes raw(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T), '\0');
  if (!values.empty())
    std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// --- tensors and types

template <class T>
Bytes tensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<T>& values) {
  Bytes bytes;
  for (int64_t dim : dims)
    bytes += number(1, dim);
  const ElementType element = std::is_same_v<T, float>     ? kFloat
                              : std::is_same_v<T, double>  ? kDouble
                              : std::is_same_v<T, uint8_t> ? kUint8
                                                           : kInt64;
  return bytes + number(2, element) + block(8, name) + block(9, raw(values));
}
inline Bytes sparse(const Bytes& values, const Bytes& indices, const std::vector<int64_t>& dims) {
  Bytes bytes = block(1, values) + block(2, indices);
  for (int64_t dim : dims)
    bytes += number(3, dim);
  return bytes;
}

using Size = std::variant<int64_t, std::string>;
inline Bytes tensor_type(ElementType element, const std::vector<Size>& sizes) {
  Bytes shape;
  for (const Size& size : sizes)
    shape += block(1, size.index() == 0 ? number(1, std::get<0>(size)) : block(2, std::get<1>(size)));
  return block(1, number(1, element) + block(2, shape));
}
inline Bytes tensor_type(ElementType element) { return block(1, number(1, element)); }  // of any rank
inline Bytes sequence_type(const Bytes& element) { return block(4, block(1, element)); }
inline Bytes optional_type(const Bytes& element) { return block(9, block(1, element)); }
inline Bytes value(const std::string& name, const Bytes& type) { return block(1, name) + block(2, type); }
inline Bytes value(const std::string& name, ElementType element, const std::vector<Size>& sizes) {
  return value(name, tensor_type(element, sizes));
}
inline Bytes untyped(const std::string& name) { return block(1, name); }

// --- attributes

inline Bytes int_attribute(const std::string& name, int64_t i) {
  return block(1, name) + number(3, i) + number(20, 2);
}
inline Bytes float_attribute(const std::string& name, float f) {
  return block(1, name) + varint(2 * 8 + 5) + raw<float>({f}) + number(20, 1);
}
inline Bytes string_attribute(const std::string& name, const std::string& s) {
  return block(1, name) + block(4, s) + number(20, 3);
}
inline Bytes floats_attribute(const std::string& name, const std::vector<float>& floats) {
  return block(1, name) + block(7, raw(floats)) + number(20, 6);
}
inline Bytes strings_attribute(const std::string& name, const Names& strings) {
  return block(1, name) + blocks(9, strings) + number(20, 8);
}
inline Bytes ints_attribute(const std::string& name, const std::vector<int64_t>& ints) {
  Bytes bytes = block(1, name);
  for (int64_t i : ints)
    bytes += number(8, i);
  return bytes + number(20, 7);
}
inline Bytes graph_attribute(const std::string& name, const Bytes& graph) {
  return block(1, name) + block(6, graph) + number(20, 5);
}
inline Bytes tensor_attribute(const std::string& name, const Bytes& tensor) {
  return block(1, name) + block(5, tensor) + number(20, 4);
}
inline Bytes sparse_attribute(const std::string& name, const Bytes& sparse) {
  return block(1, name) + block(22, sparse) + number(20, 11);
}
// An attribute of a node in a function: what the call gives as `of`.
inline Bytes reference(const std::string& name, const std::string& of, int type) {
  return block(1, name) + block(21, of) + number(20, type);
}

// --- graphs

struct NodeNames {
  std::string name = {}, domain = {}, overload = {};
};
inline Bytes node(const std::string& op, const Names& inputs, const Names& outputs,
                  const Messages& attributes = {}, const NodeNames& names = {}) {
  return blocks(1, inputs) + blocks(2, outputs) + block(3, names.name) + block(4, op) +
         blocks(5, attributes) + block(7, names.domain) + block(8, names.overload);
}

struct GraphParts {
  Messages nodes = {}, inputs = {}, outputs = {}, initializers = {}, sparse_initializers = {},
           value_info = {};
  std::string name = "g";
};
inline Bytes graph(const GraphParts& parts) {
  return blocks(1, parts.nodes) + block(2, parts.name) + blocks(5, parts.initializers) +
         blocks(11, parts.inputs) + blocks(12, parts.outputs) + blocks(13, parts.value_info) +
         blocks(15, parts.sparse_initializers);
}

inline Bytes opset(int64_t version, const std::string& domain = "") {
  return block(1, domain) + number(2, version);
}

struct FunctionParts {
  std::string name;
  Names inputs = {}, outputs = {}, attributes = {};
  Messages nodes = {}, defaults = {};
  Messages opsets = {opset(17)};
  std::string domain = "local", overload = {};
};
inline Bytes function(const FunctionParts& parts) {
  return block(1, parts.name) + blocks(4, parts.inputs) + blocks(5, parts.outputs) +
         blocks(6, parts.attributes) + blocks(7, parts.nodes) + blocks(9, parts.opsets) +
         block(10, parts.domain) + blocks(11, parts.defaults) + block(13, parts.overload);
}

inline Bytes model(const GraphParts& parts, const Messages& functions = {},
                   const Messages& opsets = {opset(17)}) {
  return number(1, 8) + block(7, graph(parts)) + blocks(8, opsets) + blocks(25, functions);
}

}  // namespace tenon::onnx::encode
