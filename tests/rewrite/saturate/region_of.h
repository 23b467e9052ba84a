// region_of.h — the nodes of a graph as terms, for tests.
#pragma once

#include "ir/graph_text.h"
#include "rewrite/saturate/candidate.h"
#include "rewrite/saturate/explore.h"

namespace tenon::saturate {

struct AsTerms {
  explicit AsTerms(std::string_view text) : graph(parse_graph(text)) {
    for (Value input : graph->inputs())
      ids[input.data()] = egraph.value(egraph.add(opaque_term(input)), 0);
    for (const Node* node : graph->nodes()) {
      terms.push_back(egraph.add(term_of(
          *node, [&](Value value) { return ids.at(value.data()); }, egraph)));
      for (int64_t i = 0; i < node->result_count(); ++i)
        ids[node->result(i).data()] = egraph.value(terms.back(), i);
    }
    for (Value output : graph->outputs())
      roots.push_back(ids.at(output.data()));
  }

  ValueId input(int64_t index) const { return ids.at(graph->input(index).data()); }

  std::unique_ptr<Graph> graph;
  EGraph egraph;
  std::map<const ValueData*, ValueId> ids;
  std::vector<TermId> terms;
  std::vector<ValueId> roots;
};

inline Rule rule(std::string_view name, const Pattern& match, const Replacement& replace,
                 Numerics numerics = Numerics::BitExact) {
  return {.name = name, .match = match, .replace = replace, .numerics = numerics, .fires = "", .stays = ""};
}

// Whether one of the values that are equal to this one is a result of the op.
inline bool has_member(const EGraph& egraph, ValueId value, std::string_view op) {
  const std::vector<ValueId> members = egraph.members(egraph.find(value));
  return std::any_of(members.begin(), members.end(), [&](ValueId member) {
    const Term& term = egraph.maker(member);
    return term.op != nullptr && term.op->name == op;
  });
}

}  // namespace tenon::saturate
