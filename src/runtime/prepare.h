// prepare.h — runs the part of a program that makes its constants of the weights.
#pragma once

#include "runtime/device.h"

namespace tenon::runtime {

// The constants by slot; others are empty. Programs that compute weights run on the device, or the reference
// evaluator runs what they were made from where there is none. Weights that lie in files take no memory until
// they are read again, and those in memory are given up: they cannot be prepared a second time.
std::vector<Tensor> run_prepare(Program& program, const std::shared_ptr<Device>& device);

}  // namespace tenon::runtime
