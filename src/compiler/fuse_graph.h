// fuse_graph.h — the passes over the kernel graph, up to which of its nodes become one kernel.
#pragma once

#include "compiler/compile_context.h"
#include "fusion/cost.h"
#include "fusion/fuse.h"
#include "schedule/cpu/tuned_contractions.h"

namespace tenon::compiler {

class FusedGraph;
struct KernelGraphPass;

// What passes over the kernel graph depend on besides it.
struct KernelGraphContext {
  const Target& target;
  const Backend& backend;
  int threads;
  NumericsBudget numerics;
  bool fuse;
  const lowering::ContractionChoices& tuning;
  MatmulPrecision precision;
  // Told of each pass that ran, with what it left.
  std::function<void(const KernelGraphPass&, const lowering::KernelGraph&)> after_pass = nullptr;
};
KernelGraphContext kernel_graph_context(const CompileContext& context);

// A row of the third table of passes, after the portable and the target pipeline.
struct KernelGraphPass {
  std::string_view name, doc;
  std::string_view condition;  // of the context, for people; empty where the pass always runs
  bool (*applies)(const KernelGraphContext&);
  void (*run)(FusedGraph&, const KernelGraphContext&);
  std::string_view why_here;
};

class FusedGraph {
 public:
  // In their order. Each runs at most once.
  static const std::vector<KernelGraphPass>& passes();

  FusedGraph(lowering::KernelGraph graph, const KernelGraphContext& context);

  const lowering::KernelGraph& graph() const { return graph_; }
  const std::vector<lowering::Group>& groups() const { return graph_.groups; }
  const std::vector<fusion::Missed>& missed() const { return missed_; }
  const std::vector<fusion::KernelCost>& costs_before() const {
    return costs_before_;
  }  // of a kernel for each node

  // Empty where the group is another step than a kernel of stages.
  std::vector<lowering::Stage> stages_of(size_t group) const;
  // The contraction that a kernel computes or packs for, if there is a choice.
  std::optional<lowering::Stage> contraction_of(size_t group) const;
  // What a group makes that others read, or the caller gets.
  std::set<std::string> needed_outside(const lowering::Group& group) const;
  std::set<std::string> needed_outside(size_t group) const { return needed_outside(groups()[group]); }
  bool is_read(lowering::BufferId buffer) const;

 private:
  void group_by_node(const Target& target);
  void group(const Target& target, NumericsBudget numerics);
  void split(const KernelGraphContext& context);
  void run(const KernelGraphPass& pass, const KernelGraphContext& context);
  void find_readers();
  // What nodes must wait for though they do not read it.
  void note_dependences();
  void note_sizes();
  void note_draws();

  lowering::KernelGraph graph_;
  std::set<lowering::BufferId> kept_;  // what the caller gets
  std::vector<fusion::Missed> missed_;
  std::vector<fusion::KernelCost> costs_before_;
  std::map<lowering::BufferId, std::vector<size_t>> readers_;  // nodes, by what they read
};

}  // namespace tenon::compiler
