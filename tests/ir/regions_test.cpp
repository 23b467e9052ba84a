// Nested graphs print, parse, clone, hash, lint and inline like any other.
#include "ir/graph_text.h"
#include "ir/print.h"
#include "ops/data.h"

namespace tenon {
namespace {

// An if inside a while inside a graph; the weight is large enough not to be printed in place.
constexpr std::string_view kNested = R"(graph main(%c: bool[], %x: f32[n,2]) {
  %trips: i64[] = constant(value=i64[] {3})
  %y: f32[n,2], %sums: f32[d0,n] = while(%trips, %c, [%x], [%c]) body(%iteration: i64[], %x: f32[n,2], %c: bool[]) {
    %w: f32[4,10] = constant(value=f32[4,10] splat 1)
    %0: f32[n,2] = if(%c, [%x]) then(%x: f32[n,2]) {
      %0: f32[n,2] = add(%x, %x)
      return %0
    } else(%x: f32[n,2]) {
      return %x
    } from "/loop/If"
    %sum: f32[n] = reduce_sum(%0, axes=[1])
    return %c, %0, %sum
  }
  return %y as "last", %sums
}
)";

TEST(Regions, PrintAndParseBack) {
  const auto graph = parse_graph(kNested);
  EXPECT_EQ(print(*graph), kNested);
  EXPECT_EQ(difference(*graph, *parse_graph(print(*graph))), "");
}

TEST(Regions, CloneWithTheirNode) {
  const auto graph = parse_graph(kNested);
  const auto copy = graph->clone();
  EXPECT_EQ(print(*copy), kNested);
  EXPECT_EQ(lint(*copy), std::vector<std::string>());
  EXPECT_EQ(structural_hash(*copy), structural_hash(*graph));
  // The copy's regions are its own.
  Node* loop = copy->outputs().front().node();
  ASSERT_NE(&loop->region("body"), &graph->outputs().front().node()->region("body"));
  EXPECT_EQ(&loop->region("body").first()->graph(), &loop->region("body"));
}

TEST(Regions, TellGraphsApart) {
  const auto graph = parse_graph(kNested);
  std::string other(kNested);
  other.replace(other.find("add(%x, %x)"), 11, "mul(%x, %x)");
  const auto changed = parse_graph(other);
  EXPECT_NE(structural_hash(*graph), structural_hash(*changed));
  EXPECT_EQ(difference(*graph, *changed),
            "node %y and node %y: in body: node \"/loop/If\" and node \"/loop/If\": in then: an add node and "
            "a mul node: add and mul");
}

TEST(Regions, RunNested) {
  const Data results = run_text(kNested, {Tensor::scalar(true), f32({1, 2}, {1, 2})});
  expect_tensor(results[0], f32({1, 2}, {8, 16}));
  expect_tensor(results[1], f32({3, 1}, {6, 12, 24}));
}

TEST(Regions, CannotSeeTheGraphAroundThem) {
  expect_error<UserError>(
      [] {
        register_ops();
        parse(
            "graph(%c: bool[], %x: f32[2]) { %y = if(%c) then() { return %x } else() { return } return %y }");
      },
      "line 1, column 61: %x is not defined here");
}

TEST(Regions, AreLintedFromTheInside) {
  const auto graph = parse_graph(kNested);
  Graph& body = graph->outputs().front().node()->region("body");
  // The carried value comes back with another shape than it goes in with.
  const std::vector<Value> outputs = body.outputs();
  body.set_outputs({outputs[0], body.first()->result(), outputs[2]});
  EXPECT_EQ(
      lint(*graph),
      std::vector<std::string>{
          "node %y: while: body takes f32[n,2] as carried value 0 of the next iteration, where n = 4, but is "
          "given f32[4,10]"});
}

TEST(Regions, AreCountedAsInputsChange) {
  const auto graph = parse_graph(kNested);
  graph->outputs().front().node()->region("body").add_input(Type::tensor(DType::F32, {}), "extra");
  EXPECT_EQ(lint(*graph), std::vector<std::string>{"node %y: while: body takes 4 values, but is given 3"});
}

TEST(Regions, AreInlinedWithTheirGraph) {
  const auto callee = parse_graph(kNested);
  Graph caller;
  const Value c = caller.add_input(Type::tensor(DType::Bool, {}), "c");
  const Value x = caller.add_input(Type::tensor(DType::F32, {Dim::symbol("n"), 2}), "x");
  caller.set_outputs(caller.inline_graph(*callee, {c, x}), callee->output_names());
  EXPECT_EQ(difference(caller, *callee), "");
  EXPECT_EQ(lint(caller), std::vector<std::string>());
}

TEST(Regions, AreBoundWithTheirGraph) {
  const auto bound = parse_graph(kNested)->bind({{"n", 4}});
  std::string expected(kNested);
  for (size_t at = expected.find("[n"); at != std::string::npos; at = expected.find("[n"))
    expected.replace(at, 2, "[4");
  expected.replace(expected.find("f32[d0,n]"), 9, "f32[d0,4]");
  EXPECT_EQ(print(*bound), expected);
}

// The size of %a has no symbol alone: seq is that of the graph around it.
constexpr std::string_view kHalved = R"(graph main(%x: f32[batch,seq], %c: bool[]) {
  %0: f32[batch] = reduce_max(%x, axes=[1])
  %1: f32[batch,2*seq] = concat([%x, %x], axis=1)
  %y: f32[batch,2*seq] = if(%c, [%1, %0]) then(%a: f32[batch,2*seq], %b: f32[batch]) {
    %2: f32[batch,2*seq] = relu(%a)
    return %2
  } else(%a: f32[batch,2*seq], %b: f32[batch]) {
    return %a
  }
  return %y
}
)";

TEST(Regions, AreBoundWhereASizeIsComputed) {
  const auto bound = parse_graph(kHalved)->bind({{"seq", 3}});
  EXPECT_EQ(lint(*bound), std::vector<std::string>());
  const Graph& then = bound->outputs().front().node()->region("then");
  EXPECT_EQ(to_string(then.input(0).type()), "f32[batch,6]");
  EXPECT_EQ(to_string(then.outputs().front().type()), "f32[batch,6]");
  EXPECT_EQ(to_string(bound->outputs().front().type()), "f32[batch,6]");
}

TEST(Regions, AreInlinedWhereASizeIsComputed) {
  const auto callee = parse_graph(kHalved);
  Graph caller;
  const Value x = caller.add_input(Type::tensor(DType::F32, {2, Dim::symbol("length")}), "x");
  const Value c = caller.add_input(Type::tensor(DType::Bool, {}), "c");
  caller.set_outputs(caller.inline_graph(*callee, {x, c}));
  EXPECT_EQ(lint(caller), std::vector<std::string>());
  EXPECT_EQ(to_string(caller.outputs().front().node()->region("else").input(0).type()), "f32[2,2*length]");
}

// n is another size in every iteration, though it is that of %x in the first; m stays.
TEST(Regions, KeepASizeThatGrows) {
  const auto graph = parse_graph(R"(
    graph main(%trips: i64[], %c: bool[], %x: f32[n], %z: f32[3*m]) {
      %y = while(%trips, %c, [%x], [%z]) body(%iteration: i64[], %x: f32[n], %z: f32[3*m]) {
        %go = constant(value=bool[] {1})
        %one = constant(value=f32[1] {1})
        %next = concat([%x, %one], axis=0)
        %s = reduce_sum(%z, axes=[0])
        return %go, %next
      }
      return %y
    })");
  const auto bound = graph->bind({{"n", 2}, {"m", 5}});
  EXPECT_EQ(lint(*bound), std::vector<std::string>());
  const Graph& body = bound->outputs().front().node()->region("body");
  EXPECT_EQ(to_string(body.input(1).type()), "f32[n]");
  EXPECT_EQ(to_string(body.input(2).type()), "f32[15]");
  expect_tensor(evaluate(*bound, {Tensor::scalar<int64_t>(2), Tensor::scalar(true), f32({2}, {3, 4}),
                                  filled(DType::F32, {15}, 0)})
                    .front(),
                f32({4}, {3, 4, 1, 1}));
}

TEST(Regions, OfTheWrongNumberAreRefused) {
  expect_error<UserError>(
      [] {
        register_ops();
        parse("graph(%c: bool[]) { if(%c) then() { return } return }");
      },
      "line 1, column 46: 'else' was expected");
}

}  // namespace
}  // namespace tenon
