// signal.h — signals and their spectra: the discrete Fourier transform, frames, windows, the mel scale.
//
// Complex numbers are pairs along the last dimension, which is 1 for real signals and 2 for complex ones.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& signal_ops();

struct Transform {
  bool inverse = false;
  bool onesided = false;  // only the half of the spectrum that a real signal determines
};

// Sizes are integers of one element.
Value dft(Value x, Value length, int64_t axis, Transform transform);  // no length: that of the axis
Value frames(Value x, Value length, Value step, int64_t axis);
// One spectrum per frame: signal [batch, time, 1 or 2], window [length] or empty.
Value stft(Value signal, Value window, Value length, Value step, bool onesided);

}  // namespace tenon
