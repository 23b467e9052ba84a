#include "schedule/start_kernel.h"

namespace tenon::schedule {

using loops::Buffer;
using loops::Kernel;
using loops::Scalar;
using lowering::Stage;

Kernel start_kernel(const std::string& name, const std::vector<Stage>& stages,
                    const std::set<std::string>& outputs, const lowering::BufferTable& buffers) {
  Kernel kernel;
  kernel.name = name;
  std::set<std::string> made, read;
  for (const Stage& stage : stages) {
    for (const Buffer& buffer : stage.definition.results)
      made.insert(buffer.name);
    for (const Scalar& value : stage.definition.values)
      loops::for_each_load(value, [&](const Scalar& load) {
        if (!made.contains(load.name()) && read.insert(load.name()).second)
          kernel.inputs.push_back(buffers.at(load.name()));
      });
    const std::optional<loops::Combine>& combine = stage.definition.own_combine;
    if (combine && kernel.find_combine(combine->name) == nullptr)
      kernel.combines.push_back(*combine);
  }
  for (const Stage& stage : stages)
    for (const Buffer& buffer : stage.definition.results)
      if (outputs.contains(buffer.name))
        kernel.outputs.push_back(buffer);
  return kernel;
}

}  // namespace tenon::schedule
