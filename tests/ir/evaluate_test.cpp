#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(Evaluate, RefusesInputsThatDoNotFit) {
  const auto graph = parse_graph("graph(%x: f32[n,2], %y: f32[n]) { %z = relu(%x) return %z, %y }");
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {f32({3, 2}, std::vector<double>(6))});
      },
      "graph main takes 2 inputs, but 1 were given");
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {i64({3, 2}, std::vector<double>(6)), f32({3}, {1, 2, 3})});
      },
      "input x must be f32[n,2], but is i64[3,2]");
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {f32({3, 2}, std::vector<double>(6)), f32({4}, {1, 2, 3, 4})});
      },
      "input y must be f32[n], where n = 3, but is f32[4]");
}

TEST(Evaluate, TakesAnythingForAnInputThatNothingReads) {
  expect_tensor(run_text("graph(%x: f32[1], %y: f32[3]) { return %x }", {f32({1}, {2}), i64({}, {1})})[0],
                f32({1}, {2}));
}

TEST(Evaluate, NamesTheNodeThatFailed) {
  const auto graph =
      parse_graph("graph(%a: i64[1], %b: i64[1]) { %y = div(%a, %b) from \"model/Div\" return %y }");
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {i64({1}, {1}), i64({1}, {0})});
      },
      "node \"model/Div\": div: an integer is divided by zero");
}

TEST(Evaluate, RefusesAResultOfAnotherTypeThanTheModelDeclares) {
  const auto graph = parse_graph("graph(%x: f32[3]) { %y: i64[1,2] = nonzero(%x) return %y }");
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {f32({3}, {1, 2, 3})});
      },
      "node %y: nonzero: result 0 should be i64[1,2], but came out as i64[1,3]");
}

TEST(Evaluate, IsAtFaultWhereAResultIsOfAnotherTypeThanTheInferredOne) {
  register_ops();
  const OpDef twice = {.name = "twice",
                       .doc = "x, and x again",
                       .operands = {{"x", "any"}},
                       .results = {{"y", "any"}},
                       .infer = [](const Node& n) -> Types { return {n.in("x").type()}; },
                       .eval = [](const Call&) -> Data {
                         return {f32({4}, {1, 2, 1, 2})};
                       }};
  Graph graph;
  const Value x = graph.add_input(parse_type("f32[n]"), "x");
  graph.set_outputs({graph.create(twice, {{"x", x}})->result()});
  expect_error<InternalError>(
      [&] {
        evaluate(graph, {f32({2}, {1, 2})});
      },
      "a twice node: twice: result 0 should be f32[n], where n = 2, but came out as f32[4]");
}

// A size of 0 in a shape stands for that of x, which inference does not foresee.
TEST(Evaluate, RefusesASizeOfZeroThatInferenceTookForMore) {
  const auto graph = parse_graph(R"(graph(%x: f32[n,m]) {
    %s = shape(%x) %0 = constant(value=i64[1] {0}) %n = gather(%s, %0) %o = constant(value=i64[1] {-1})
    %t = concat([%o, %n], axis=0) %y = reshape(%x, %t, allow_zero=false) from "transposed" return %y })");
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {f32({0, 1}, {})});
      },
      "node \"transposed\": reshape: result 0 should be f32[m,n], where m = 1, n = 0, but came out as "
      "f32[0,1]");
}

// A loop of no iterations collects nothing, of the size that it would have collected.
TEST(Evaluate, GivesWhatALoopOfNoTurnsCollectsItsSizes) {
  const auto graph = parse_graph(R"(graph(%n: i64[], %x: f32[k]) {
    %0, %1 = while(%n, carried=[%x]) body(%i: i64[], %a: f32[k]) {
      %go = constant(value=bool[] {1}) %b = concat([%a, %a], axis=0) return %go, %a, %b }
    return %1 })");
  const Data outputs = evaluate(*graph, {i64({}, {0}), f32({3}, {1, 2, 3})});
  EXPECT_EQ(outputs.front().tensor().extents(), (Extents{0, 6}));
}

TEST(Evaluate, ReturnsAnInputOrOneValueTwice) {
  const Data out = run_text("graph(%x: f32[1]) { %y = relu(%x) return %y, %x, %y }", {f32({1}, {-1})});
  expect_tensor(out[0], f32({1}, {0}));
  expect_tensor(out[1], f32({1}, {-1}));
  expect_tensor(out[2], f32({1}, {0}));
}

}  // namespace
}  // namespace tenon
