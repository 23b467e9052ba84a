// onnx_run.h — encoded models, imported and run, or refused.
#pragma once

#include <algorithm>

#include "base/temporary_folder.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx_model.h"
#include "ir/graph_text.h"

namespace tenon::onnx {

inline std::unique_ptr<Graph> import(const encode::Bytes& bytes) {
  register_ops();
  const TemporaryFolder folder;
  std::unique_ptr<Graph> graph = read_onnx(folder.write("m.onnx", bytes));
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  return graph;
}

// The outputs of a model, and the first of them.
inline Data run_all(const encode::Bytes& bytes, const Data& inputs) {
  return evaluate(*import(bytes), inputs);
}
inline Tensor run(const encode::Bytes& bytes, const Data& inputs) {
  return run_all(bytes, inputs).at(0).tensor();
}

// The message, less the name of the file in front of it.
template <class Error = UserError>
void refuse(const encode::Bytes& bytes, const std::string& message) {
  register_ops();
  const TemporaryFolder folder;
  const auto path = folder.write("m.onnx", bytes);
  expect_error<Error>([&] { read_onnx(path); }, path.string() + ": " + message);
}

inline encode::ElementType element_type(DType dtype) {
  using namespace encode;
  constexpr std::pair<DType, ElementType> types[] = {
      {DType::F16, kFloat16}, {DType::F32, kFloat},     {DType::F64, kDouble},
      {DType::I8, kInt8},     {DType::I32, kInt32},     {DType::I64, kInt64},
      {DType::U8, kUint8},    {DType::String, kString}, {DType::Bool, kBool},
  };
  const auto found = std::ranges::find(types, dtype, &std::pair<DType, ElementType>::first);
  CHECK(found != std::end(types), "no test has inputs of {}", dtype);
  return found->second;
}

// The type of a tensor, as a model declares it.
inline encode::Bytes type_of_input(const Tensor& tensor) {
  return encode::tensor_type(element_type(tensor.dtype()),
                             {tensor.extents().begin(), tensor.extents().end()});
}

// A model of one node "n" with inputs x0, x1, … of the given types, and outputs y0, y1, …. An empty type
// leaves an input out.
struct OneNode {
  std::string op;
  encode::Messages types = {}, attributes = {};
  int64_t opset = 17;
  std::string domain = {};
  int outputs = 1;
};
inline encode::Bytes model_of(const OneNode& one) {
  using namespace encode;
  GraphParts parts;
  Names inputs, outputs;
  for (const Bytes& type : one.types) {
    inputs.push_back(type.empty() ? "" : fmt::format("x{}", inputs.size()));
    if (!type.empty())
      parts.inputs.push_back(value(inputs.back(), type));
  }
  for (int i = 0; i < one.outputs; ++i) {
    outputs.push_back(fmt::format("y{}", i));
    parts.outputs.push_back(untyped(outputs.back()));
  }
  parts.nodes = {node(one.op, inputs, outputs, one.attributes, {.name = "n", .domain = one.domain})};
  return model(parts, {}, {encode::opset(one.opset, one.domain)});
}

}  // namespace tenon::onnx
