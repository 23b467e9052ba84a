#include "rewrite/view.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

// What is made of %x: f32[FROM] to see it as [TO], as text; empty for nothing.
std::string written(const std::string& from, const std::string& to) {
  const auto graph = parse_graph("graph g(%x: f32[" + from + "], %y: f32[" + to + "]) { return %x }");
  const Value made = view(graph->input(0), graph->input(1).shape());
  if (!made)
    return "";
  if (made.is_input())
    return "%x";
  EXPECT_EQ(made.type(), graph->input(1).type());
  EXPECT_TRUE(is_written_as_view(*made.node()));
  const Node& node = *made.node();
  const std::vector<int64_t> numbers =
      node.is("reshape") ? *node.in("shape").known_ints() : node.attr("axes").as<std::vector<int64_t>>();
  return fmt::format("{} {}{}", node.op().name, fmt::join(numbers, ","),
                     node.is("reshape") && !node.attr("allow_zero").as<bool>() ? " copying zeros" : "");
}

TEST(View, IsWrittenInOneWay) {
  EXPECT_EQ(written("2,n", "2,n"), "%x");
  EXPECT_EQ(written("n,m", "n,1,m,1"), "unsqueeze 1,3");
  EXPECT_EQ(written("1,n,1,4", "n,4"), "squeeze 0,2");
  EXPECT_EQ(written("1,4", "1,1,4"), "unsqueeze 1");
  EXPECT_EQ(written("1,n", "n,1"), "reshape -1,1");
  EXPECT_EQ(written("2,6", "3,4"), "reshape 3,4");
  EXPECT_EQ(written("0,6", "2,0"), "reshape 2,0");
  EXPECT_EQ(written("n,6", "n,2,3"), "reshape -1,2,3");
  EXPECT_EQ(written("n,m,6", "n,m,2,3"), "reshape 0,0,2,3 copying zeros");
  EXPECT_EQ(written("n,m,6", "n,2*m,3"), "reshape 0,-1,3 copying zeros");
}

TEST(View, IsNotWrittenWhereNoConstantSaysTheShape) {
  EXPECT_EQ(written("n,m,6", "2*n,3*m"), "");
  EXPECT_EQ(written("n,0", "0,m"), "");
  EXPECT_EQ(written("n,m,6", "n,k,2,3"), "");
  EXPECT_EQ(written("*", "2"), "");
}

}  // namespace
}  // namespace tenon
