// candidate.h — a term of an e-graph as a plain graph, in which rules are matched and applied as they always
// are.
//
// Rules are more than patterns: their conditions and replacements are functions that look at nodes, constants
// and uses. So they are not matched on classes. Each way to make a term of members of the classes of its
// operands is written out as a graph of its own, with inputs for what lies too deep to be looked at, and
// every rule is tried on its last node. What holds of this graph holds of every graph that it is part of.
// Values have the uses that they would have if nothing else used them: whether computing something twice is
// worth it, the cost decides in the end.
#pragma once

#include <map>
#include <memory>

#include "rewrite/journal.h"
#include "rewrite/rule.h"
#include "rewrite/saturate/egraph.h"

namespace tenon::saturate {

class Candidate {
 public:
  // The term and what it is made of: as many nodes as `most_nodes`, the nearest first, and all that is fixed.
  Candidate(const EGraph& egraph, TermId root, int64_t most_nodes);

  // Nothing where its types cannot be told from what is looked at.
  bool is_valid() const { return root_ != nullptr; }
  Graph& graph() { return *graph_; }
  Node* root() const { return root_; }
  TermId term_of(const Node* node) const { return terms_.at(node); }
  // Adds what was made in the graph since, and gives the value that `value` is there. Nothing where it cannot
  // stand in any graph.
  std::optional<ValueId> add_to(EGraph& egraph, Value value, const std::vector<std::string>& sources);

 private:
  bool make(const EGraph& egraph, TermId term);

  std::unique_ptr<Graph> graph_;
  Node* root_ = nullptr;
  std::map<const ValueData*, ValueId> ids_;
  std::map<ValueId, Value> made_;
  std::map<const Node*, TermId> terms_;
  std::set<std::string> symbols_;  // of the sizes in it
};

// A graph's value as a term that stands for it alone.
Term opaque_term(Value value);
// The node as a term of operands that are there already, by their values in the graph. Constants that are
// large, and parameters, stand for themselves alone.
Term term_of(const Node& node, const std::function<ValueId(Value)>& id_of, const EGraph& egraph);

// Whether a term can be copied, merged and left out: it has no nested graph, draws nothing at random, and its
// results are tensors of known rank.
bool can_be_term(const Node& node);

}  // namespace tenon::saturate
