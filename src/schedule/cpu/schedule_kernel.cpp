#include "schedule/cpu/schedule_kernel.h"

#include "schedule/cpu/nest.h"
#include "schedule/cpu/overlapped_tiles.h"

namespace tenon::schedule {

loops::Kernel schedule_kernel(const std::vector<lowering::Stage>& stages, const lowering::Group& group,
                              const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                              const Context& context) {
  return group.parts.empty() ? build_nest("kernel", stages, group, outputs, buffers, context)
                             : build_overlapped_tiles("kernel", stages, group, buffers, context.target);
}

}  // namespace tenon::schedule
