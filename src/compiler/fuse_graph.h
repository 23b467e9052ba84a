// fuse_graph.h — which steps of a lowered graph become one kernel.
#pragma once

#include "fusion/cost.h"
#include "fusion/fuse.h"
#include "schedule/cpu/tuned_contractions.h"

namespace tenon::compiler {

class FusedGraph;

// What passes over the lowered graph depend on besides it.
struct KernelGraphContext {
  const Target& target;
  int threads;
  NumericsBudget numerics;
  bool fuse;
  const lowering::ContractionChoices& tuning;
};

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

  // `kept` is what the caller gets.
  FusedGraph(lowering::LoweredGraph lowered, std::set<std::string> kept, const KernelGraphContext& context);

  const lowering::LoweredGraph& lowered() const {
    return lowered_;
  }  // without what is computed where it is needed
  const std::vector<lowering::Group>& groups() const { return groups_; }
  const std::vector<fusion::Missed>& missed() const { return missed_; }
  const std::vector<fusion::KernelCost>& costs_before() const {
    return costs_before_;
  }  // of a kernel for each node

  // Empty where the group is another step than a kernel of stages.
  std::vector<lowering::Stage> stages_of(size_t group) const;
  // The contraction that a kernel computes or packs for, if there is a choice.
  std::optional<lowering::Stage> contraction_of(size_t group) const;
  // What a group makes that others read, or the caller gets.
  std::set<std::string> needed_outside(size_t group) const;
  bool is_read(const std::string& buffer) const;

 private:
  void inline_items(const Target& target);
  void group_by_node(const Target& target);
  void group(const Target& target);
  void find_readers();
  // What items must wait for though they do not read it.
  void note_dependences();
  void note_sizes();
  void note_draws();
  std::map<std::string, std::string> views() const;  // buffers that are others under another shape

  lowering::LoweredGraph lowered_;
  std::set<std::string> kept_;
  std::vector<lowering::Group> groups_;
  std::vector<fusion::Missed> missed_;
  std::vector<fusion::KernelCost> costs_before_;
  std::map<std::string, std::vector<size_t>> readers_;  // items, by what they read
};

}  // namespace tenon::compiler
