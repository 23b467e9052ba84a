// signal.cpp — ONNX ops on signals, and Det.
#include "ops/signal.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/precision.h"
#include "ops/determinant.h"
#include "ops/reshape.h"

namespace tenon::onnx {
namespace {

// Sizes may be i32.
Value size(Value value) { return value ? in_dtype(value, DType::I64) : value; }

// The axis is an attribute until opset 19, and an input from then on.
std::vector<Value> fourier_transform(const NodeView& n) {
  Attributes attributes = {{"inverse", n.flag("inverse", false)}, {"onesided", n.flag("onesided", false)}};
  const Value x = n.in(0), length = size(n.maybe(1));
  if (const Value axis = n.opset() >= 20 ? n.maybe(2) : Value())
    return n.make("dft", {{"x", x}, {"length", length}, {"axis", axis}}, attributes);
  attributes.emplace("axis", n.opset() >= 20 ? -2 : n.integer("axis", 1));
  return n.make("dft", {{"x", x}, {"length", length}}, attributes);
}

std::vector<Value> short_time_fourier_transform(const NodeView& n) {
  const Value window = n.maybe(2);
  Value signal = n.in(0), length = size(n.maybe(3));
  if (!length && !window)
    throw user_error("STFT: it has neither a window nor a frame_length");
  if (signal.shape().ranked() && signal.rank() == 2)  // real, without a dimension to say so
    signal = unsqueeze(signal, {2});
  return {stft(signal, window, length ? length : shape_of(window), size(n.in(1)), n.flag("onesided", true))};
}

Convert window(const std::vector<double>& coefficients) {
  return [coefficients](const NodeView& n) {
    return n.make("cosine_window", {{"size", size(n.in(0))}},
                  {{"coefficients", coefficients},
                   {"periodic", n.flag("periodic", true)},
                   {"dtype", n.dtype("output_datatype", DType::F32)}});
  };
}

std::vector<Value> mel_weight_matrix(const NodeView& n) {
  return n.make("mel_weight_matrix",
                {{"mel_bins", size(n.in(0))},
                 {"dft_length", size(n.in(1))},
                 {"sample_rate", size(n.in(2))},
                 {"lower", n.in(3)},
                 {"upper", n.in(4)}},
                {{"dtype", n.dtype("output_datatype", DType::F32)}});
}

std::vector<Value> matrix_determinant(const NodeView& n) { return {determinant(n.in(0))}; }

}  // namespace

const Conversions& signal_conversions() {
  static const Conversions conversions = {
      {"BlackmanWindow", window({0.42, 0.5, 0.08})},
      {"Det", matrix_determinant},
      {"DFT", fourier_transform},
      {"HammingWindow", window({25.0 / 46, 21.0 / 46})},
      {"HannWindow", window({0.5, 0.5})},
      {"MelWeightMatrix", mel_weight_matrix},
      {"STFT", short_time_fourier_transform},
  };
  return conversions;
}

}  // namespace tenon::onnx
