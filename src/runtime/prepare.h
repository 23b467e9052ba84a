// prepare.h — runs the part of a program that makes its constants of the weights.
#pragma once

#include <exception>

#include "runtime/device_constants.h"

namespace tenon::runtime {

struct Prepared {
  std::vector<Tensor> constants;         // by slot; others are empty
  std::exception_ptr failure = nullptr;  // a UserError: constants whose elements cannot be computed with
  std::optional<DeviceConstants> on_device = std::nullopt;  // where they were uploaded already
};

// A failure is for who runs the program: a graph that is never run, as the body of a loop of no iterations,
// may hold such constants. Programs that compute weights run on the device, or the reference evaluator runs
// what they were made from where there is none. Weights that lie in files take no memory until they are read
// again, and those in memory are given up, but for programs some of whose weights vary.
Prepared run_prepare(Program& program, const std::shared_ptr<Device>& device);

// The same of a saved program, whose constants lie in its file as kernels read them: see freeze_constants.
Prepared frozen_constants(Program& program, const std::shared_ptr<Device>& device);

using PrepareConstants = Prepared (*)(Program& program, const std::shared_ptr<Device>& device);

// Whether some of a program's weights vary (see Literal): it keeps what its constants are made of, so that
// those that are made of such weights can be made anew.
bool has_varying_weights(const Program& program);
void renew_constants(Program& program, const std::shared_ptr<Device>& device, std::vector<Tensor>& constants);

}  // namespace tenon::runtime
