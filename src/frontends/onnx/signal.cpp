// signal.cpp — ONNX ops on signals, and Det.
#include "ops/signal.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/determinant.h"
#include "ops/reshape.h"
#include "ops/select.h"

namespace tenon::onnx {
namespace {

// Sizes may be i32.
Value as_i64(Value value) { return in_dtype(value, DType::I64); }

// The axis is an attribute until opset 19, and an input from then on.
std::vector<Value> convert_dft(const NodeView& n) {
  Attributes attributes = {{"inverse", n.flag("inverse", false)}, {"onesided", n.flag("onesided", false)}};
  const Value x = n.in(0), length = as_i64(n.maybe(1));
  if (const Value axis = n.opset() >= 20 ? n.maybe(2) : Value())
    return n.make("dft", {{"x", x}, {"length", length}, {"axis", axis}}, attributes);
  attributes.emplace("axis", n.opset() >= 20 ? -2 : n.integer("axis", 1));
  return n.make("dft", {{"x", x}, {"length", length}}, attributes);
}

std::vector<Value> convert_stft(const NodeView& n) {
  const Value window = n.maybe(2);
  Value signal = n.in(0), length = as_i64(n.maybe(3));
  if (!length && !window)
    throw user_error("STFT: it has neither a window nor a frame_length");
  if (signal.shape().ranked() && signal.rank() == 2)  // real, without a dimension to say so
    signal = unsqueeze(signal, {2});
  return {
      stft(signal, window, length ? length : shape_of(window), as_i64(n.in(1)), n.flag("onesided", true))};
}

Convert cosine_window(const std::vector<double>& coefficients) {
  return [coefficients](const NodeView& n) {
    return n.make("cosine_window", {{"size", as_i64(n.in(0))}},
                  {{"coefficients", coefficients},
                   {"periodic", n.flag("periodic", true)},
                   {"dtype", n.dtype("output_datatype", DType::F32)}});
  };
}

std::vector<Value> convert_mel_weight_matrix(const NodeView& n) {
  return n.make("mel_weights",
                {{"mel_bins", as_i64(n.in(0))},
                 {"dft_length", as_i64(n.in(1))},
                 {"sample_rate", as_i64(n.in(2))},
                 {"lower", n.in(3)},
                 {"upper", n.in(4)}},
                {{"dtype", n.dtype("output_datatype", DType::F32)}});
}

std::vector<Value> convert_det(const NodeView& n) { return {determinant(n.in(0))}; }

}  // namespace

const Conversions& signal_conversions() {
  static const Conversions conversions = {
      {"BlackmanWindow", cosine_window({0.42, 0.5, 0.08})},
      {"Det", convert_det},
      {"DFT", convert_dft},
      {"HammingWindow", cosine_window({25.0 / 46, 21.0 / 46})},
      {"HannWindow", cosine_window({0.5, 0.5})},
      {"MelWeightMatrix", convert_mel_weight_matrix},
      {"STFT", convert_stft},
  };
  return conversions;
}

}  // namespace tenon::onnx
