// device_constants.h — the constants that kernels read, in the memory of a device.
#pragma once

#include "runtime/device.h"
#include "runtime/program.h"

namespace tenon::runtime {

struct DeviceConstants {
  std::vector<std::byte*> pointers = {};  // by slot; null for those that no kernel reads
  std::shared_ptr<std::byte[]> memory = nullptr;
};

// Of a program with its steps, on a device with memory of its own. They are there when this returns.
DeviceConstants upload_constants(const Program& program, const std::vector<Tensor>& constants,
                                 Device& device);

}  // namespace tenon::runtime
