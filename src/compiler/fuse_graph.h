// fuse_graph.h — which steps of a lowered graph become one kernel.
#pragma once

#include "compiler/look_up_choices.h"
#include "fusion/cost.h"

namespace tenon {

class FusedGraph {
 public:
  // `kept` is what the caller gets. Without `fuse`, each node is a kernel, for which nothing is chosen.
  FusedGraph(LoweredGraph lowered, std::set<std::string> kept, bool fuse, const ContractionChoices& choices,
             const ChoiceCircumstances& circumstances);

  const LoweredGraph& lowered() const { return lowered_; }  // without what is computed where it is needed
  const std::vector<Group>& groups() const { return groups_; }
  const std::vector<Missed>& missed() const { return missed_; }
  const std::vector<KernelCost>& costs_before() const { return costs_before_; }  // of a kernel for each node

  // Empty where the group is another step than a kernel of stages.
  std::vector<Stage> stages_of(size_t group) const;
  // The sum of products that a kernel computes, or moves elements for, if it can be computed otherwise.
  std::optional<Stage> contraction_of(size_t group) const;
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

  LoweredGraph lowered_;
  std::set<std::string> kept_;
  std::vector<Group> groups_;
  std::vector<Missed> missed_;
  std::vector<KernelCost> costs_before_;
  std::map<std::string, std::vector<size_t>> readers_;  // items, by what they read
};

}  // namespace tenon
