#include "compiler/backend.h"

#include "codegen/generate.h"
#include "runtime/cpu/cpu_device.h"
#include "schedule/cpu/schedule_kernel.h"

namespace tenon::compiler {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> table = {
      {.name = "cpu",
       .schedule = schedule::schedule_kernel,
       .schedule_nest = [](const loops::Kernel& nest) { return nest; },
       .generate = codegen::generate_object,
       .make_device = [](int) { return runtime::make_cpu_device(std::make_unique<codegen::Jit>()); }},
  };
  return table;
}

const Backend& default_backend() { return backends().front(); }

}  // namespace tenon::compiler
