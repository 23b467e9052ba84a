#include "rewrite/journal.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(Journal, ForgetsWhatItSaidOfNodesThatAreRewritten) {
  const auto graph =
      parse_graph(R"(graph g(%a: f32[2]) { %0 = exp(%a) from "grow" %1 = neg(%0) from "turn" return %1 })");
  Node *grow = graph->nodes()[0], *turn = graph->nodes()[1];
  Journal journal;
  journal.declined("one", *grow, "it is small");
  journal.declined("two", *turn, "it is large");
  journal.applied("three", {grow}, Numerics::BitExact);
  ASSERT_EQ(journal.remarks().size(), 1u);
  EXPECT_EQ(journal.remarks().begin()->reason, "it is large");
}

}  // namespace
}  // namespace tenon
