// cost.h — the cost model: estimates rough enough to be cheap and good enough to compare two choices.
#pragma once

#include "lowering/kernel_graph.h"
#include "target/target.h"

namespace tenon::fusion {

// Of one element. Parts that are shared count each time, as they do when the formula is printed.
struct FormulaCost {
  int64_t parts = 0;       // no more are counted than the largest formula may have, and one
  int64_t operations = 0;  // in additions
  int64_t loads = 0, bytes = 0;
};

constexpr int64_t kLargestFormula = 200;  // in parts; larger ones take longer to compile than they save

FormulaCost cost_of(const loops::Scalar& formula);

// Of stages fused into one kernel; sizes may be symbolic.
struct KernelCost {
  Dim bytes = 0;  // of what is read and written in memory, each buffer once
  Dim operations = 0;
};
// `outputs`: results with readers outside the kernel; `buffers`: all buffers.
KernelCost cost_of(const std::vector<lowering::Stage>& stages, const std::set<std::string>& outputs,
                   const lowering::BufferTable& buffers);

// In bytes.
Dim size_of(const loops::Buffer& buffer);

// What one core does in a nanosecond.
struct Rates {
  double bytes_from_memory, bytes_from_cache, operations;

  // Of a buffer of so many bytes that one kernel writes and another reads. At best it is in the second level
  // then, for another core may have written it.
  double bytes_between_kernels(double bytes, const Caches& caches) const {
    return bytes <= static_cast<double>(caches.level2) ? bytes_from_cache : bytes_from_memory;
  }
};
Rates rates_of(const Target& target);

}  // namespace tenon::fusion
