#include "lowering/kernel_graph.h"

namespace tenon::lowering {

using loops::Scalar;

std::set<std::string> buffers_read(const Stage& stage) {
  std::set<std::string> names;
  for (const Scalar& value : stage.definition.values)
    loops::for_each_load(value, [&](const Scalar& load) { names.insert(load.name()); });
  return names;
}

}  // namespace tenon::lowering
