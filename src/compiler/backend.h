// backend.h — what turns kernels into code and runs it: one row for each kind of device.
#pragma once

#include "codegen/object_cache.h"
#include "loops/kernel.h"
#include "runtime/device.h"

namespace tenon::compiler {

struct Backend {
  std::string_view name;  // as users choose it
  // Several threads may generate at once. With a cache, code comes from there where it can.
  runtime::KernelCode (*generate)(const loops::Kernel& kernel, const Target& target,
                                  const std::optional<codegen::ObjectCache>& cache);
  std::shared_ptr<runtime::Device> (*make_device)();
};

const std::vector<Backend>& backends();
const Backend& default_backend();  // the first: this CPU

}  // namespace tenon::compiler
