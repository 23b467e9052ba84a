// build_kernels.h — the kernels of a fused graph: each group scheduled as a loop nest.
#pragma once

#include "compiler/compile_context.h"
#include "compiler/fuse_graph.h"
#include "loops/canonical_names.h"

namespace tenon::compiler {

class Kernels {
 public:
  Kernels(const FusedGraph& fused, const CompileContext& context);

  // Null where the group is no kernel.
  const loops::NamedKernel* find(size_t group) const;
  const std::map<size_t, loops::NamedKernel>& by_group() const { return kernels_; }

  // Equal kernels share a number. These are the first of each, by their numbers.
  const std::vector<const loops::NamedKernel*>& distinct() const { return distinct_; }
  size_t number_of(size_t group) const { return numbers_.at(group); }

  std::vector<loops::Kernel> in_order() const;
  // The same before they are arranged for the target, to be read.
  std::vector<loops::Kernel> unscheduled() const;

 private:
  std::optional<loops::NamedKernel> build(size_t group) const;
  std::optional<loops::NamedKernel> build_nest_of_node(const lowering::KernelNode& node) const;

  const FusedGraph& fused_;
  const Backend& backend_;
  const Target target_;
  // For which loops are partitioned. Algorithms do not depend on their number, so results are the same bit by
  // bit.
  const int threads_;
  std::map<size_t, loops::NamedKernel> kernels_;
  std::map<size_t, size_t> numbers_;
  std::vector<const loops::NamedKernel*> distinct_;
};

}  // namespace tenon::compiler
