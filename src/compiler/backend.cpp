#include "compiler/backend.h"

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "codegen/cuda/emit.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/occupancy.h"
#include "codegen/generate.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cuda/cuda_device.h"
#include "schedule/cpu/schedule_kernel.h"
#include "schedule/cuda/schedule_kernel.h"

namespace tenon::compiler {
namespace {

int64_t occupancy_on_gpu(const loops::Kernel& kernel, const Target& target) {
  return codegen::cuda::blocks_per_multiprocessor(kernel, *target.gpu);
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> table = {
      {.name = "cpu",
       .schedule = schedule::schedule_kernel,
       .schedule_nest = [](const loops::Kernel& nest) { return nest; },
       .generate = codegen::generate_object,
       .make_device = [](int) { return runtime::make_cpu_device(std::make_unique<codegen::Jit>()); }},
      {.name = "cuda",
       .schedule = schedule::cuda::schedule_kernel,
       .schedule_nest = schedule::cuda::schedule_nest,
       .scratch_bytes = codegen::cuda::shared_bytes,
       .occupancy = occupancy_on_gpu,
       .generate =
           [](const loops::Kernel& kernel, const Target& target,
              const std::optional<codegen::ObjectCache>& cache) {
             return codegen::compile_cuda(codegen::cuda::emit_cuda(kernel), *target.gpu, cache);
           },
       .make_device =
           [](int number) {
             const char* checks = std::getenv("TENON_CUDA_CHECK");
             return runtime::make_cuda_device(
                 number, {.checks_kernels = checks != nullptr && std::string_view(checks) == "1"});
           },
       .has_own_memory = true},
  };
  return table;
}

const Backend& default_backend() { return backends().front(); }

const Backend& backend_named(std::string_view name) {
  const auto found = std::ranges::find(backends(), name, &Backend::name);
  CHECK(found != backends().end(), "there is no backend {}", name);
  return *found;
}

}  // namespace tenon::compiler
