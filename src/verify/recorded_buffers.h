// recorded_buffers.h — what the buffers of a kernel graph hold, as far as that is recorded of the graph that
// it was lowered from.
#pragma once

#include "lowering/kernel_graph.h"
#include "verify/cut_out.h"

namespace tenon {

class RecordedBuffers {
 public:
  explicit RecordedBuffers(const RecordedValues& recorded) : recorded_(recorded) {}

  // A buffer that a value is a plain copy of holds that value, also once the copy is inlined.
  void note_copies(const lowering::KernelGraph& graph);

  // Null where it is no tensor, or not known.
  const Tensor* find(const lowering::KernelBuffer& buffer) const;

 private:
  const RecordedValues& recorded_;
  std::map<std::string, Value> copied_;  // by the name of the buffer
};

}  // namespace tenon
