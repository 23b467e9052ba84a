#include "ops/control.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

Tensor truth(bool value) { return Tensor::scalar(value); }

void refuse(std::string_view text, const std::string& message) {
  expect_error<UserError>(
      [&] {
        register_ops();
        parse(text);
      },
      message);
}

// --- if ---

constexpr std::string_view kChoice = R"(
  graph(%c: bool[], %x: f32[n,2], %y: f32[n,2]) {
    %r = if(%c, [%x, %y])
      then(%x: f32[n,2], %y: f32[n,2]) { %s = add(%x, %y) return %s }
      else(%x: f32[n,2], %y: f32[n,2]) { return %x }
    return %r
  })";

TEST(If, RunsOneBranch) {
  const Tensor x = f32({1, 2}, {1, 2}), y = f32({1, 2}, {10, 20});
  expect_tensor(run_text(kChoice, {truth(true), x, y})[0], f32({1, 2}, {11, 22}));
  expect_tensor(run_text(kChoice, {truth(false), x, y})[0], x);
  EXPECT_EQ(output_type(kChoice), "f32[n,2]");
}

TEST(If, JoinsTheShapesOfItsBranches) {
  const auto joined = [](std::string_view then, std::string_view otherwise) {
    return output_type(fmt::format(R"(
      graph(%c: bool[1], %x: {0}, %y: {1}) {{
        %r = if(%c, [%x, %y])
          then(%x: {0}, %y: {1}) {{ return %x }}
          else(%x: {0}, %y: {1}) {{ return %y }}
        return %r
      }})",
                                   then, otherwise));
  };
  EXPECT_EQ(joined("f32[n,4]", "f32[n,4]"), "f32[n,4]");
  EXPECT_EQ(joined("f32[n,4]", "f32[3,4]"), "f32[d0,4]");
  EXPECT_EQ(joined("f32[4]", "f32[4,1]"), "f32[*]");
  EXPECT_EQ(joined("seq<f32[4]>", "seq<f32[5]>"), "seq<f32[?]>");
}

TEST(If, HasTheShapeOfTheBranchThatSizesChoose) {
  // Drops axis 1 if its size is 1, as exporters write squeeze(1).
  const auto squeezed = [](std::string_view x) {
    return output_type(fmt::format(R"(
      graph(%x: {0}) {{
        %s = shape(%x)
        %at = constant(value=i64[1] {{1}})
        %size = gather(%s, %at)
        %c = equal(%size, %at)
        %r = if(%c, [%x])
          then(%x: f32[n,m,k]) {{ %y = squeeze(%x, axes=[1]) return %y }}
          else(%x: f32[n,m,k]) {{ return %x }}
        return %r
      }})",
                                   x));
  };
  EXPECT_EQ(squeezed("f32[8,1,n]"), "f32[8,n]");
  EXPECT_EQ(squeezed("f32[8,n,n]"), "f32[*]");
}

TEST(If, FeedsBranchesThatTakeMoreThanTheyGet) {
  // k and m stand for whatever sizes come in.
  EXPECT_EQ(output_type(R"(
    graph(%c: bool[], %x: f32[n,8]) {
      %r = if(%c, [%x])
        then(%x: f32[k,m]) { return %x }
        else(%x: f32[m,8]) { return %x }
      return %r
    })"),
            "f32[n,8]");
}

TEST(If, SaysWhichBranchDoesNotFit) {
  const auto graph = [](std::string_view then, std::string_view otherwise) {
    return fmt::format(
        "graph(%c: bool[], %x: f32[3], %y: f32[4]) {{ %r = if(%c, [%x, %y]) then{} else{} return %r }}", then,
        otherwise);
  };
  const std::string good = "(%x: f32[3], %y: f32[4]) { return %x }", at = "line 1, column 50: if: ";
  refuse(graph("(%x: f32[3]) { return %x }", good), at + "then takes 1 values, but is given 2");
  refuse(graph(good, "(%x: f32[3], %y: f64[4]) { return %x }"),
         at + "else takes f64[4] as input 1, but is given f32[4]");
  refuse(graph(good, "(%x: f32[k], %y: f32[k]) { return %x }"),
         at + "else takes f32[k] as input 0, where k = 4, but is given f32[3]");
  refuse(graph(good, "(%x: f32[3], %y: f32[4]) { return %x, %y }"),
         at + "then gives 1 values, but else gives 2");
  refuse(graph(good, "(%x: f32[3], %y: f32[4]) { %i = shape(%x) return %i }"),
         at + "value 0 is f32[3] in then, but i64[1] in else");
  refuse("graph(%c: bool[2]) { %r = if(%c) then() { return } else() { return } return %r }",
         "line 1, column 27: if: condition must be one element, but is bool[2]");
}

// --- while ---

// Fibonacci numbers, collected.
constexpr std::string_view kFibonacci = R"(
  graph(%trips: i64[], %a: i64[], %b: i64[]) {
    %yes = constant(value=bool[] {1})
    %last, %next, %all = while(%trips, %yes, [%a, %b]) body(%iteration: i64[], %a: i64[], %b: i64[]) {
      %yes = constant(value=bool[] {1})
      %c = add(%a, %b)
      return %yes, %b, %c, %a
    }
    return %last, %next, %all
  })";

TEST(While, CarriesAndCollects) {
  const Data results = run_text(kFibonacci, {i64({}, {6}), i64({}, {0}), i64({}, {1})});
  expect_tensor(results[0], i64({}, {8}));
  expect_tensor(results[1], i64({}, {13}));
  expect_tensor(results[2], i64({6}, {0, 1, 1, 2, 3, 5}));
}

TEST(While, OfNoTurnsGivesWhatItWasGiven) {
  for (double trips : {0.0, -3.0}) {
    const Data results = run_text(kFibonacci, {i64({}, {trips}), i64({}, {7}), i64({}, {8})});
    expect_tensor(results[0], i64({}, {7}));
    expect_tensor(results[2], i64({0}, {}));
  }
}

TEST(While, StopsWhenItsBodySaysSo) {
  const std::string text = R"(
    graph(%x: i64[]) {
      %limit = constant(value=i64[] {100})
      %y, %iterations = while(carried=[%x], captured=[%limit]) body(%iteration: i64[], %x: i64[], %limit: i64[]) {
        %twice = add(%x, %x)
        %more = less(%twice, %limit)
        return %more, %twice, %iteration
      }
      return %y, %iterations
    })";
  const Data results = run_text(text, {i64({}, {20})});
  expect_tensor(results[0], i64({}, {160}));
  expect_tensor(results[1], i64({3}, {0, 1, 2}));
}

TEST(While, DoesNotStartWhereTheConditionFails) {
  const std::string text = R"(
    graph(%c: bool[1], %x: f32[n]) {
      %y, %all = while(condition=%c, carried=[%x]) body(%iteration: i64[], %x: f32[n]) {
        %no = constant(value=bool[1] {0})
        %twice = add(%x, %x)
        return %no, %twice, %x
      }
      return %y, %all
    })";
  Data results =
      run_text(text, {Tensor::of(std::span<const bool>(std::array{false}), {1}), f32({2}, {1, 2})});
  expect_tensor(results[0], f32({2}, {1, 2}));
  expect_tensor(results[1], f32({0, 2}, {}));
  results = run_text(text, {Tensor::of(std::span<const bool>(std::array{true}), {1}), f32({2}, {1, 2})});
  expect_tensor(results[0], f32({2}, {2, 4}));
  expect_tensor(results[1], f32({1, 2}, {1, 2}));
}

TEST(While, KeepsSizesThatLastAndForgetsThoseThatDoNot) {
  // m is n in every iteration; k is 1 in the first.
  const auto graph = parse_graph(R"(
    graph(%t: i64[], %x: f32[n,3], %g: f32[1]) {
      %y, %h, %all = while(%t, carried=[%x, %g]) body(%iteration: i64[], %x: f32[m,3], %g: f32[k]) {
        %yes = constant(value=bool[] {1})
        %square = mul(%x, %x)
        %size = add(%iteration, %iteration)
        %shape = unsqueeze(%size, axes=[0])
        %grown = broadcast(%g, %shape)
        return %yes, %square, %grown, %square
      }
      return %y, %h, %all
    })");
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[n,3]");
  EXPECT_EQ(to_string(graph->outputs()[1].type()), "f32[d1]");
  EXPECT_EQ(to_string(graph->outputs()[2].type()), "f32[d2,n,3]");
}

TEST(While, KnowsHowMuchItCollects) {
  const auto collected = [](std::string_view condition, std::string_view go_on) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n,4], %c: bool[]) {{
        %yes = constant(value=bool[] {{1}})
        %shape = shape(%x)
        %trips = reduce_prod(%shape, axes=[0])
        %all = while(%trips, {}, captured=[%c]) body(%iteration: i64[], %c: bool[]) {{
          %yes = constant(value=bool[] {{1}})
          return {}, %iteration
        }}
        return %all
      }})",
                                   condition, go_on));
  };
  EXPECT_EQ(collected("%yes", "%yes"), "i64[4*n]");
  EXPECT_EQ(collected("%c", "%yes"), "i64[d0]");
  EXPECT_EQ(collected("%yes", "%c"), "i64[d0]");
}

TEST(While, SaysWhatDoesNotFit) {
  const auto graph = [](std::string_view body) {
    return fmt::format(
        "graph(%x: f32[3], %g: f32[n]) {{ %y = while(carried=[%x], captured=[%g]) body{} return %y }}", body);
  };
  const std::string at = "line 1, column 38: while: ", no = "%no = constant(value=bool[] {0}) ";
  const std::string inputs = "(%t: i64[], %x: f32[3], %g: f32[n]) { ";
  refuse(graph("(%t: i64[], %x: f32[3]) { " + no + "return %no, %x }"),
         at + "body takes 2 values, but is given 3");
  refuse(graph(inputs + no + "return %no }"),
         at + "body gives 1 values, but must give whether to go on, and 1 carried values");
  refuse(graph(inputs + no + "return %x, %x }"), at + "whether to go on must be bool[], but is f32[3]");
  refuse(graph(inputs + no + "%s = shape(%x) return %no, %s }"),
         at + "body takes f32[3] as carried value 0 of the next iteration, but is given i64[1]");
  refuse(graph(inputs + no + "return %no, %g }"),
         at + "body takes f32[3] as carried value 0 of the next iteration, but is given f32[n]");
  refuse(graph("(%t: i64[], %x: f32[k], %g: f32[k]) { " + no + "return %no, %x }"),
         at + "body takes f32[k] as carried value 0, where k = n, but is given f32[3]");
  refuse(graph("(%t: i32[], %x: f32[3], %g: f32[n]) { " + no + "return %no, %x }"),
         at + "body takes i32[] as the number of the iteration, but is given i64[]");
}

// --- scan ---

std::string sum_along(std::string_view attributes, std::string_view x = "f32[3,2]",
                      std::string_view slice = "f32[2]") {
  return fmt::format(R"(
    graph(%x: {}, %start: {}) {{
      %last, %all = scan([%start], [%x], {}) body(%sum: {}, %slice: {}) {{
        %next = add(%sum, %slice)
        return %next, %next
      }}
      return %last, %all
    }})",
                     x, slice, attributes, slice, slice);
}

TEST(Scan, AndWhileTellTheInputsAndOutputsOfTheirBodies) {
  const auto loop = parse_graph(R"(
    graph(%n: i64[], %x: f32[2], %k: f32[2]) {
      %y, %c = while(%n, carried=[%x], captured=[%k]) body(%iteration: i64[], %a: f32[2], %b: f32[2]) {
        %go = constant(value=bool[] {1})
        %s = add(%a, %b)
        return %go, %s, %a
      }
      return %y, %c
    })");
  const LoopBody iteration(*loop->first());
  const Graph& body = iteration.graph;
  EXPECT_EQ(iteration.iteration, body.input(0));
  EXPECT_EQ(iteration.carried, (std::vector{body.input(1)}));
  EXPECT_TRUE(iteration.slices.empty());
  EXPECT_EQ(iteration.captured, (std::vector{body.input(2)}));
  EXPECT_EQ(iteration.varying(), (std::vector{body.input(0), body.input(1)}));
  EXPECT_EQ(iteration.go_on, body.outputs()[0]);
  EXPECT_EQ(iteration.next, (std::vector{body.outputs()[1]}));
  EXPECT_EQ(iteration.collected, (std::vector{body.input(1)}));

  const auto scan = parse_graph(R"(
    graph(%x: f32[2], %s: f32[3,2], %k: f32[2]) {
      %y = scan([%x], [%s], [%k], axes=[0], reversed=[0], output_axes=[], output_reversed=[])
        body(%a: f32[2], %b: f32[2], %c: f32[2]) {
          %t = add(%a, %b)
          return %t
        }
      return %y
    })");
  const LoopBody slice(*scan->first());
  EXPECT_FALSE(slice.iteration);
  EXPECT_FALSE(slice.go_on);
  EXPECT_EQ(slice.carried, (std::vector{slice.graph.input(0)}));
  EXPECT_EQ(slice.slices, (std::vector{slice.graph.input(1)}));
  EXPECT_EQ(slice.captured, (std::vector{slice.graph.input(2)}));
  EXPECT_EQ(slice.next, slice.graph.outputs());
  EXPECT_TRUE(slice.collected.empty());
}

TEST(While, EndsByItsCountUnlessSomethingElseMayEndIt) {
  const auto ends = [](std::string_view operands, std::string_view goes_on) {
    const auto graph = parse_graph(fmt::format(R"(
      graph(%n: i64[], %c: bool[], %x: f32[]) {{
        %yes = constant(value=bool[] {{1}})
        %no = constant(value=bool[] {{0}})
        %y = while({}carried=[%x], captured=[%c])
          body(%iteration: i64[], %a: f32[], %b: bool[]) {{
            %true = constant(value=bool[] {{1}})
            return {}, %a
          }}
        return %y
      }})",
                                               operands, goes_on));
    return ends_by_count(*graph->outputs()[0].node());
  };
  EXPECT_TRUE(ends("%n, ", "%true"));
  EXPECT_TRUE(ends("%n, %yes, ", "%true"));
  EXPECT_FALSE(ends("%n, %no, ", "%true"));
  EXPECT_FALSE(ends("%n, %c, ", "%true"));
  EXPECT_FALSE(ends("%n, ", "%b"));
  EXPECT_FALSE(ends("", "%true"));
}

TEST(Scan, RunsForwardAndBackward) {
  const Data inputs = {f32({3, 2}, {1, 2, 3, 4, 5, 6}), f32({2}, {0, 0})};
  Data results = run_text(sum_along("axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]"), inputs);
  expect_tensor(results[0], f32({2}, {9, 12}));
  expect_tensor(results[1], f32({3, 2}, {1, 2, 4, 6, 9, 12}));
  results = run_text(sum_along("axes=[-2], reversed=[1], output_axes=[-1], output_reversed=[0]"), inputs);
  expect_tensor(results[1], f32({2, 3}, {5, 8, 9, 6, 10, 12}));
  results = run_text(sum_along("axes=[0], reversed=[1], output_axes=[0], output_reversed=[1]"), inputs);
  expect_tensor(results[1], f32({3, 2}, {9, 12, 8, 10, 5, 6}));
}

TEST(Scan, InfersSymbolicShapes) {
  const auto graph = parse_graph(
      sum_along("axes=[1], reversed=[0], output_axes=[1], output_reversed=[0]", "f32[n,t,4]", "f32[n,4]"));
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[n,4]");
  EXPECT_EQ(to_string(graph->outputs()[1].type()), "f32[n,t,4]");
}

TEST(Scan, OverNothingGivesWhatItWasGiven) {
  const Data results = run_text(
      sum_along("axes=[0], reversed=[0], output_axes=[1], output_reversed=[0]", "f32[t,n]", "f32[n]"),
      {f32({0, 2}, {}), f32({2}, {7, 8})});
  expect_tensor(results[0], f32({2}, {7, 8}));
  expect_tensor(results[1], f32({2, 0}, {}));
}

TEST(Scan, SaysWhatDoesNotFit) {
  const auto refuse_scan = [](std::string_view attributes, const std::string& message) {
    refuse(sum_along(attributes), "line 3, column 21: scan: " + message);
  };
  refuse_scan("axes=[2], reversed=[0], output_axes=[0], output_reversed=[0]",
              "axis 2 is out of range for a tensor of rank 2");
  refuse_scan("axes=[], reversed=[0], output_axes=[0], output_reversed=[0]",
              "axes has 0 numbers for 1 scanned values");
  refuse_scan("axes=[0], reversed=[0], output_axes=[0, 0], output_reversed=[0]",
              "output_axes has 2 numbers for 1 collected values");
  refuse_scan("axes=[1], reversed=[0], output_axes=[0], output_reversed=[0]",
              "body takes f32[2] as slice of scanned value 0, but is given f32[3]");
  refuse_scan("axes=[0], reversed=[0], output_axes=[2], output_reversed=[0]",
              "axis 2 is out of range for a tensor of rank 2");
  refuse(
      "graph(%a: f32[2], %b: f32[3]) { scan(scanned=[%a, %b], axes=[0, 0], reversed=[0, 0], output_axes=[], "
      "output_reversed=[]) body(%a: f32[], %b: f32[]) { return } return }",
      "line 1, column 33: scan: scanned value 1 has 3 slices, but those before it have 2");
}

TEST(Scan, RefusesLengthsThatDifferWhenItRuns) {
  expect_error<UserError>(
      [] {
        run_text(
            "graph(%a: f32[n], %b: f32[m]) { scan(scanned=[%a, %b], axes=[0, 0], reversed=[0, 0], "
            "output_axes=[], "
            "output_reversed=[]) body(%a: f32[], %b: f32[]) { return } return }",
            {f32({2}, {1, 2}), f32({1}, {1})});
      },
      "a scan node: scan: scanned value 1 has 1 slices, but those before it have 2");
}

}  // namespace
}  // namespace tenon
