// onnx_runtime_op.h — models of one op of ONNX Runtime's own, and the numbers that ONNX Runtime 1.30 gives
// for them.
#pragma once

#include <cmath>

#include "frontends/onnx_run.h"
#include "tensor/packing.h"

namespace tenon::onnx {

// An input of a node; a fixed one is part of the model.
struct Input {
  Input() = default;  // left out
  Input(Tensor given) : tensor(std::move(given)) {}
  std::optional<Tensor> tensor = {};
  bool is_fixed = false;
};

inline Input fixed(Tensor tensor) {
  Input input(std::move(tensor));
  input.is_fixed = true;
  return input;
}

inline Tensor reals(double phase, const Extents& extents) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(extents); ++i)
    values.push_back(std::sin(0.37 * static_cast<double>(i) + phase) + 0.1);
  return f32(extents, values);
}

// Scattered over 0 to 250, and the same around 0.
inline Tensor bytes(int64_t phase, const Extents& extents, DType dtype = DType::U8, int64_t least = 0) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(extents); ++i)
    values.push_back(static_cast<double>((7919 * i + 31 * phase) % 251 + least));
  return tensor(dtype, extents, values);
}
inline Tensor signed_bytes(int64_t phase, const Extents& extents) {
  return bytes(phase, extents, DType::I8, -125);
}

inline Tensor number(double value) { return f32({}, {value}); }
inline Tensor zero(double value) { return tensor(DType::U8, {}, {value}); }

struct OneOp {
  std::string op, domain = "com.microsoft";
  std::vector<Input> inputs;
  encode::Messages attributes = {};
  std::vector<std::optional<Tensor>> outputs = {};
};

inline encode::Bytes initializer(const std::string& name, const Tensor& tensor) {
  using namespace encode;
  Bytes message;
  for (int64_t extent : tensor.extents())
    message += encode::number(1, extent);
  const std::vector<std::byte> packed = pack(tensor);
  return message + encode::number(2, element_type(tensor.dtype())) + block(8, name) +
         block(9, Bytes(reinterpret_cast<const char*>(packed.data()), packed.size()));
}

inline encode::Bytes model_of(const OneOp& one) {
  using namespace encode;
  GraphParts parts;
  Names inputs, outputs;
  for (const Input& input : one.inputs) {
    inputs.push_back(input.tensor ? fmt::format("x{}", inputs.size()) : "");
    if (input.is_fixed)
      parts.initializers.push_back(initializer(inputs.back(), *input.tensor));
    else if (input.tensor)
      parts.inputs.push_back(value(inputs.back(), type_of_input(*input.tensor)));
  }
  for (const auto& output : one.outputs) {
    outputs.push_back(output ? fmt::format("y{}", outputs.size()) : "");
    if (output)
      parts.outputs.push_back(untyped(outputs.back()));
  }
  parts.nodes = {node(one.op, inputs, outputs, one.attributes, {.name = "n", .domain = one.domain})};
  return model(parts, {}, {encode::opset(17), encode::opset(1, "com.microsoft")});
}

inline void expect_as_onnx_runtime(const OneOp& one) {
  SCOPED_TRACE(one.op);
  Data inputs;
  for (const Input& input : one.inputs)
    if (input.tensor && !input.is_fixed)
      inputs.emplace_back(*input.tensor);
  const Data results = run_all(model_of(one), inputs);
  size_t next = 0;
  for (const auto& output : one.outputs)
    if (output)
      expect_near(results.at(next++), *output, is_float(output->dtype()) ? 1e-4 : 0);
}

template <class Error = UserError>
void refuse_op(const OneOp& one, const std::string& message) {
  refuse<Error>(model_of(one), "node \"n\": " + message);
}

}  // namespace tenon::onnx
