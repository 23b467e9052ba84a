// backend.h — what schedules kernels, turns them into code and runs it: one row for each kind of device.
#pragma once

#include "codegen/object_cache.h"
#include "loops/kernel.h"
#include "loops/parallel_regions.h"
#include "lowering/kernel_graph.h"
#include "runtime/device.h"
#include "schedule/context.h"

namespace tenon::compiler {

struct Backend {
  std::string_view name;
  // The loops of the kernel that computes the stages of a group: see schedule/cpu/schedule_kernel.h.
  loops::Kernel (*schedule)(const std::vector<lowering::Stage>& stages, const lowering::Group& group,
                            const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                            const schedule::Context& context);
  // The same of a kernel that an op wrote itself.
  loops::Kernel (*schedule_nest)(const loops::Kernel& nest);
  // Bytes of memory for each iteration of a region: of a thread of a CPU, or of a thread block.
  Dim (*scratch_bytes)(const loops::ParallelRegion& region) = loops::scratch_bytes;
  // How many thread blocks of a kernel a multiprocessor runs at once, 0 where the device cannot run it. Null
  // where it can run every kernel.
  int64_t (*occupancy)(const loops::Kernel& kernel, const Target& target) = nullptr;
  // Several threads may generate at once. With a cache, code comes from there where it can.
  runtime::KernelCode (*generate)(const loops::Kernel& kernel, const Target& target,
                                  const std::optional<codegen::ObjectCache>& cache);
  std::shared_ptr<runtime::Device> (*make_device)(int number);
  bool has_own_memory = false;  // which kernels use, and values are copied to and from
};

const std::vector<Backend>& backends();
const Backend& default_backend();                     // the first: this CPU
const Backend& backend_named(std::string_view name);  // one there is

}  // namespace tenon::compiler
