// fuse_graph.h — which steps of a lowered graph become one kernel.
#pragma once

#include "fusion/cost.h"
#include "fusion/fuse.h"
#include "schedule/cpu/tuned_contractions.h"

namespace tenon::compiler {

class FusedGraph {
 public:
  // `kept` is what the caller gets. Without `fuse`, each node is a kernel, for which nothing is chosen.
  FusedGraph(lowering::LoweredGraph lowered, std::set<std::string> kept, bool fuse,
             const lowering::ContractionChoices& choices, const schedule::ChoiceCircumstances& circumstances);

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
  // The sum of products that a kernel computes, or moves elements for, if it can be computed otherwise.
  std::optional<lowering::Stage> contraction_of(size_t group) const;
  // What a group makes that others read, or the caller gets.
  std::set<std::string> needed_outside(size_t group) const;
  bool is_read(const std::string& buffer) const;

 private:
  void inline_items(const std::set<std::string>& kept, const Target& target);
  void group_by_node(const Target& target);
  void find_readers();
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
