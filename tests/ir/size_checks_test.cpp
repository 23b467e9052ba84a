#include "ir/size_checks.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(SizeChecks, RefuseWhatDoesNotGoTogetherAndGoOn) {
  const auto graph = parse_graph(R"(graph(%a: f32[2,n], %b: f32[m,4], %c: f32[k,4]) {
      %x = matmul(%a, %b)
      %y = matmul(%a, %c)
      return %x, %y
    })");
  SizeChecks checks(*graph);
  checks.check({{"k", 3}, {"m", 3}, {"n", 3}});
  for (int again = 0; again < 2; ++again) {
    expect_error<UserError>(
        [&] {
          checks.check({{"k", 3}, {"m", 5}, {"n", 3}});
        },
        "node %x: matmul: inner dimensions differ\n  a  %a: f32[2,3]\n  b  %b: f32[5,4]\n"
        "  inner dimensions: 3 of a, 5 of b");
    checks.check({{"k", 5}, {"m", 5}, {"n", 5}});
  }
  EXPECT_THROW(checks.check({{"k", 3}, {"m", 5}, {"n", 5}}), UserError);
}

TEST(SizeChecks, WaitUntilSizesAreKnown) {
  const auto graph = parse_graph("graph(%a: f32[2,n], %b: f32[m,4]) { %x = matmul(%a, %b) return %x }");
  SizeChecks checks(*graph);
  checks.check({{"n", 3}});
  EXPECT_THROW(checks.check({{"m", 4}, {"n", 3}}), UserError);
  checks.check({{"m", 3}, {"n", 3}});
}

// What a node is given may decide, not only the sizes of it.
TEST(SizeChecks, TellNodesApartByWhatIsKnownOfTheirOperands) {
  const auto graph = parse_graph(R"(graph(%x: f32[n]) {
      %two = constant(value=i64[2] {2,-1})
      %three = constant(value=i64[2] {3,-1})
      %a = reshape(%x, %two)
      %b = reshape(%x, %three)
      return %a, %b
    })");
  SizeChecks checks(*graph);
  checks.check({{"n", 6}});
  EXPECT_THROW(checks.check({{"n", 2}}), UserError);
  EXPECT_THROW(checks.check({{"n", 3}}), UserError);
}

TEST(SizeChecks, LeaveControlFlowAlone) {
  const auto graph = parse_graph(R"(graph(%x: f32[n,1], %test: bool[]) {
      %0 = if(%test, [%x]) then(%a: f32[n,1]) {
        %0 = matmul(%a, %a)
        return %0
      } else(%a: f32[n,1]) {
        return %a
      }
      return %0
    })");
  SizeChecks(*graph).check({{"n", 2}});
}

}  // namespace
}  // namespace tenon
