#include "runtime/prepare.h"
#include "runtime/program.h"

namespace tenon::runtime {

Prepared frozen_constants(Program& program, const std::shared_ptr<Device>&) {
  Prepared made{.constants = std::vector<Tensor>(program.slots.size())};
  for (const PrepareStep& step : program.prepare.steps)
    made.constants[step.slot] = program.prepare.weights[step.weights.front()].literal.tensor();
  return made;
}

}  // namespace tenon::runtime
