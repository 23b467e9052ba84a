// devices.h — the GPUs of this machine.
#pragma once

#include <vector>

#include "target/gpu.h"

namespace tenon::runtime {

// cuda:0, cuda:1, …, at least one. That there is none, or no driver for it, is a user_error that says why.
std::vector<Gpu> list_gpus();

// cuda:N; a user_error where there is none.
Gpu gpu_numbered(int number);

}  // namespace tenon::runtime
