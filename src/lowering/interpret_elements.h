// interpret_elements.h — single elements of a kernel graph's buffers, computed as its nodes define them from
// what the values of the graph are known to be: how nodes of a graph that is too large to interpret are
// compared with the graph that it was lowered from.
#pragma once

#include <functional>

#include "ir/fit.h"
#include "lowering/kernel_graph.h"

namespace tenon::lowering {

class ElementInterpreter {
 public:
  // What a value of the graph is; null where that is no tensor, or not known. Must stay as long as this.
  using Known = std::function<const Tensor*(Value)>;

  ElementInterpreter(const KernelGraph& graph, Known known);
  ~ElementInterpreter();

  const Bindings& sizes() const;  // that known values have

  // Whether all that the buffer is made of is known, or computed by definitions.
  bool can_compute(BufferId buffer) const;
  // Whether its own elements are computed by a definition, too, and should be those of a known value.
  bool can_compare(BufferId buffer) const;

  // The elements of the buffer's value at these places, counted row by row, as the buffer's node computes
  // them from known values. Buffers on the way that are no values are computed likewise.
  Tensor compute(BufferId buffer, const std::vector<int64_t>& places);

  // All elements as they lie in memory: those of its value where that is known, else computed.
  Tensor in_memory(BufferId buffer);

 private:
  class Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace tenon::lowering
