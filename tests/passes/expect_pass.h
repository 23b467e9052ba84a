// expect_pass.h — passes are tested on text: the graph before and after, compared structurally.
#pragma once

#include "ir/graph_text.h"
#include "passes/passes.h"

namespace tenon {

using PassFunction = void (*)(Graph&, Journal&);

// The journal, for those who ask what was declined.
inline Journal expect_pass(PassFunction pass, std::string_view before, std::string_view after,
                           NumericsBudget budget = NumericsBudget::Default) {
  const std::unique_ptr<Graph> graph = parse_graph(before);
  Journal journal(budget);
  pass(*graph, journal);
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  EXPECT_EQ(difference(*graph, *parse_graph(after)), "") << print(*graph);
  return journal;
}

inline Journal expect_unchanged(PassFunction pass, std::string_view text,
                                NumericsBudget budget = NumericsBudget::Default) {
  Journal journal = expect_pass(pass, text, text, budget);
  EXPECT_TRUE(journal.applications().empty());
  return journal;
}

// The reason of the only remark.
inline std::string only_remark(const Journal& journal) {
  EXPECT_EQ(journal.remarks().size(), 1u);
  return journal.remarks().empty() ? "" : journal.remarks().begin()->reason;
}

}  // namespace tenon
