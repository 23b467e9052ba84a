// interpret_elements.h — evaluates single elements of a kernel graph's buffers from recorded values of the
// graph that it was lowered from, so that nodes of a kernel graph too large to interpret can be compared with
// it.
#pragma once

#include <functional>

#include "ir/fit.h"
#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// What the graph has in a buffer, in its own layout; null where that is no tensor, or not known. Must stay as
// long as who asks.
using ValueLookup = std::function<const Tensor*(const KernelBuffer&)>;

// The sizes that known values have.
Bindings sizes_of_values(const KernelGraph& graph, const ValueLookup& values);

class ElementInterpreter {
 public:
  // Values are looked up where they are read. The graph and the sizes must stay as long as this.
  ElementInterpreter(const KernelGraph& graph, const Bindings& sizes, ValueLookup values);
  ~ElementInterpreter();

  // Whether all that the buffer is made of is known, or computed by definitions.
  bool can_compute(BufferId buffer) const;
  // Whether its own elements are computed by a definition, too, and should be those of a known value.
  bool can_compare(BufferId buffer) const;

  // The elements of the buffer's value at these linear indices, as the buffer's node computes them from known
  // values. Intermediate buffers that are not values of the graph are computed likewise.
  Tensor compute(BufferId buffer, const std::vector<int64_t>& indices);

  // All elements as they lie in memory: those of its value where that is known, else computed.
  Tensor materialise(BufferId buffer);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::lowering
