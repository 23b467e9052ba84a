#include "rewrite/replace_pattern.h"

#include "ir/graph_text.h"
#include "ir/print.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace tenon {
namespace {

const TracedFunction relu_times = [](Value x, Value y) { return relu(x) * y; };
const TracedFunction exp_minus = [](Value x, Value y) { return exp(x) - y; };

// Replaces the pattern in a graph given as text, and compares with what it should become.
void expect_replaced(std::string_view before, const TracedFunction& pattern,
                     const TracedFunction& replacement, int64_t count, std::string_view after) {
  const auto graph = parse_graph(before);
  EXPECT_EQ(replace_pattern(*graph, pattern, replacement), count);
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  EXPECT_EQ(difference(*graph, *parse_graph(after)), "") << print(*graph);
}

void expect_unchanged(std::string_view text, const TracedFunction& pattern,
                      const TracedFunction& replacement) {
  expect_replaced(text, pattern, replacement, 0, text);
}

TEST(ReplacePattern, ReplacesEveryOccurrence) {
  expect_replaced(R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = relu(%a) %1 = mul(%0, %b) %2 = neg(%1) %3 = relu(%2) %4 = mul(%3, %2) return %4 })",
                  relu_times, exp_minus, 2, R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = exp(%a) %1 = sub(%0, %b) %2 = neg(%1) %3 = exp(%2) %4 = sub(%3, %2) return %4 })");
}

TEST(ReplacePattern, TakesOperandsOfACommutativeOpInAnyOrder) {
  expect_replaced("graph g(%a: f32[2], %b: f32[2]) { %0 = relu(%a) %1 = mul(%b, %0) return %1 }", relu_times,
                  exp_minus, 1,
                  "graph g(%a: f32[2], %b: f32[2]) { %0 = exp(%a) %1 = sub(%0, %b) return %1 }");
  expect_unchanged(
      "graph g(%a: f32[2], %b: f32[2]) { %0 = relu(%a) %1 = sub(%b, %0) return %1 }",
      [](Value x, Value y) { return relu(x) - y; }, exp_minus);
}

TEST(ReplacePattern, LeavesWhatIsUsedElsewhere) {
  constexpr std::string_view text =
      "graph g(%a: f32[2], %b: f32[2]) { %0 = relu(%a) %y = mul(%0, %b) %2 = neg(%0) return %y, %2 }";
  expect_unchanged(text, relu_times, exp_minus);
  expect_unchanged("graph g(%a: f32[2], %b: f32[2]) { %0 = relu(%a) %1 = mul(%0, %b) return %1, %0 }",
                   relu_times, exp_minus);
  // Here y would be what lies within.
  expect_unchanged("graph g(%a: f32[2]) { %0 = relu(%a) %1 = mul(%0, %0) return %1 }", relu_times, exp_minus);
  Journal journal;
  replace_pattern(*parse_graph(text), {.name = "mine", .pattern = relu_times, .replacement = exp_minus},
                  journal);
  ASSERT_EQ(journal.remarks().size(), 1u);
  EXPECT_EQ(journal.remarks().begin()->rule, "mine");
  EXPECT_EQ(journal.remarks().begin()->node, "node %y");
  EXPECT_EQ(journal.remarks().begin()->reason, "unmet condition: no intermediate value has other users");
}

TEST(ReplacePattern, AsksForTheSameAttributes) {
  const TracedFunction pattern = [](Value x) { return softmax(x, 1); };
  const TracedFunction replacement = [](Value x) { return log_softmax(x, 1); };
  expect_replaced("graph g(%a: f32[2,3]) { %0 = softmax(%a, axis=1) return %0 }", pattern, replacement, 1,
                  "graph g(%a: f32[2,3]) { %0 = log_softmax(%a, axis=1) return %0 }");
  expect_unchanged("graph g(%a: f32[2,3]) { %0 = softmax(%a, axis=0) return %0 }", pattern, replacement);
}

TEST(ReplacePattern, AsksForTheSameConstantsButForBroadcasting) {
  const TracedFunction pattern = [](Value x) { return x * 2.0; };
  const TracedFunction replacement = [](Value x) { return x + x; };
  const auto product = [](std::string_view constant) {
    return fmt::format("graph g(%a: f32[2,3]) {{ %c = constant(value={}) %0 = mul(%a, %c) return %0 }}",
                       constant);
  };
  constexpr std::string_view sum = "graph g(%a: f32[2,3]) { %0 = add(%a, %a) return %0 }";
  for (const char* twos :
       {"f32[] {2}", "f32[3] {2, 2, 2}", "f32[2,1] {2, 2}", "f32[2,3] splat 2", "f32[1,3] splat 2"})
    expect_replaced(product(twos), pattern, replacement, 1, sum);
  for (const char* others : {"f32[] {3}", "f32[3] {2, 2, 3}", "f32[4,1,1] {2, 2, 2, 2}"})
    expect_unchanged(product(others), pattern, replacement);
  expect_replaced(R"(graph g(%a: f32[500,500]) {
    %c = constant(value=f32[500,500] splat 2) %0 = mul(%c, %a) return %0 })",
                  pattern, replacement, 1, "graph g(%a: f32[500,500]) { %0 = add(%a, %a) return %0 }");
  // A parameter is not the number it has today.
  expect_unchanged(R"(graph g(%a: f32[2,3]) {
    %c = parameter(name="p", value=f32[] {2}) %0 = mul(%a, %c) return %0 })",
                   pattern, replacement);
}

TEST(ReplacePattern, ComparesTensorsElementByElement) {
  const TracedFunction pattern = [](Value x) {
    return x + constant(x.graph(), Tensor::of<float>({1, 2, 3}));
  };
  const TracedFunction replacement = [](Value x) { return -x; };
  constexpr std::string_view negated = "graph g(%a: f32[2,3]) { %0 = neg(%a) return %0 }";
  expect_replaced(R"(graph g(%a: f32[2,3]) {
    %c = constant(value=f32[1,3] {1, 2, 3}) %0 = add(%c, %a) return %0 })",
                  pattern, replacement, 1, negated);
  expect_unchanged(R"(graph g(%a: f32[2,3]) {
    %c = constant(value=f32[1,3] {1, 2, 4}) %0 = add(%c, %a) return %0 })",
                   pattern, replacement);
}

TEST(ReplacePattern, BroadcastsConstantsOnlyBesideElementwiseOps) {
  const TracedFunction pattern = [](Value x) {
    return x + reduce_sum(constant(x.graph(), Tensor::of<float>({1, 1, 1})), {0});
  };
  const TracedFunction replacement = [](Value x) { return x + 3.0; };
  expect_unchanged(R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[5] {1, 1, 1, 1, 1}) %0 = reduce_sum(%c, axes=[0]) %1 = add(%a, %0) return %1 })",
                   pattern, replacement);
  expect_replaced(R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[3] {1, 1, 1}) %0 = reduce_sum(%c, axes=[0]) %1 = add(%a, %0) return %1 })",
                  pattern, replacement, 1,
                  "graph g(%a: f32[2]) { %c = constant(value=f32[] {3}) %0 = add(%a, %c) return %0 }");
}

TEST(ReplacePattern, TakesTheFirstOfThoseThatOverlap) {
  expect_replaced(
      "graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) %2 = neg(%1) return %2 }",
      [](Value x) { return -(-x); }, [](Value x) { return abs(x); }, 1,
      "graph g(%a: f32[2]) { %0 = abs(%a) %1 = neg(%0) return %1 }");
}

TEST(ReplacePattern, DoesNotLookAtWhatItMade) {
  // Neither by itself …
  expect_replaced(
      "graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) return %1 }", [](Value x) { return -x; },
      [](Value x) { return -abs(x); }, 2,
      "graph g(%a: f32[2]) { %0 = abs(%a) %1 = neg(%0) %2 = abs(%1) %3 = neg(%2) return %3 }");
  // … nor with what was there.
  expect_replaced(
      "graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) %2 = neg(%1) return %2 }",
      [](Value x) { return -(-x); }, [](Value x) { return -x; }, 1,
      "graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) return %1 }");
}

TEST(ReplacePattern, WorksInNestedGraphs) {
  expect_replaced(R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = relu(%x) %2 = mul(%1, %x) return %2 } else(%x: f32[2]) { return %x }
    return %0 })",
                  relu_times, exp_minus, 1, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = exp(%x) %2 = sub(%1, %x) return %2 } else(%x: f32[2]) { return %x }
    return %0 })");
}

TEST(ReplacePattern, IsForEveryDTypeAndShape) {
  expect_replaced(R"(graph g(%a: i32[n,3], %b: i32[m,1,1], %c: f16[2]) {
    %0 = relu(%a) %1 = mul(%0, %b) %2 = relu(%c) %3 = mul(%2, %c) return %1, %3 })",
                  relu_times, [](Value x, Value y) { return abs(x) * y; }, 2,
                  R"(graph g(%a: i32[n,3], %b: i32[m,1,1], %c: f16[2]) {
    %0 = abs(%a) %1 = mul(%0, %b) %2 = abs(%c) %3 = mul(%2, %c) return %1, %3 })");
  // The number is an f16 here.
  expect_replaced(
      "graph g(%a: f16[n]) { %c = constant(value=f16[] {0.1}) %0 = mul(%a, %c) return %0 }",
      [](Value x) { return x * 0.1; }, [](Value x) { return x / 10.0; }, 1,
      "graph g(%a: f16[n]) { %c = constant(value=f16[] {10}) %0 = div(%a, %c) return %0 }");
}

TEST(ReplacePattern, ReplacesWhatHasNoKnownRank) {
  expect_replaced("graph g(%a: f32[*], %b: f32[2]) { %0 = relu(%a) %1 = mul(%0, %b) return %1 }", relu_times,
                  exp_minus, 1,
                  "graph g(%a: f32[*], %b: f32[2]) { %0 = exp(%a) %1 = sub(%0, %b) return %1 }");
}

TEST(ReplacePattern, TracesThePatternForWhatItFinds) {
  const PatternRewrite mean = {
      .inputs = {f32({8, 16})},
      .pattern = [](Value x) { return reduce_sum(x, {1}) / static_cast<double>(*x.dim(1).constant()); },
      .replacement = [](Value x) { return reduce_mean(x, {1}); }};
  const auto divided_by = [](int divisor) {
    return fmt::format(R"(graph g(%a: f32[n,5]) {{
      %c = constant(value=f32[] {{{}}}) %0 = reduce_sum(%a, axes=[1]) %1 = div(%0, %c) return %1 }})",
                       divisor);
  };
  Journal journal;
  const auto graph = parse_graph(divided_by(5)), other = parse_graph(divided_by(16));
  EXPECT_EQ(replace_pattern(*graph, mean, journal), 1);
  EXPECT_EQ(
      difference(*graph, *parse_graph("graph g(%a: f32[n,5]) { %0 = reduce_mean(%a, axes=[1]) return %0 }")),
      "");
  EXPECT_EQ(replace_pattern(*other, mean, journal), 0);
  // Nor does it stand for what the function has no meaning for.
  const auto symbolic = parse_graph(R"(graph g(%a: f32[n,m], %b: f32[*]) {
    %c = constant(value=f32[] {16}) %0 = reduce_sum(%a, axes=[1]) %1 = div(%0, %c)
    %2 = reduce_sum(%b, axes=[1]) %3 = div(%2, %c) return %1, %3 })");
  EXPECT_EQ(replace_pattern(*symbolic, mean, journal), 0);
}

TEST(ReplacePattern, FollowsSymbolicSizes) {
  const PatternRewrite flatten = {.inputs = {f32({2, 3, 4})},
                                  .pattern = [](Value x) { return reshape(exp(x), shape_of(x)); },
                                  .replacement = [](Value x) { return exp(x); }};
  const auto graph =
      parse_graph("graph g(%a: f32[n,2*m]) { %0 = exp(%a) %1 = shape(%a) %2 = reshape(%0, %1) return %2 }");
  Journal journal;
  EXPECT_EQ(replace_pattern(*graph, flatten, journal), 1);
  EXPECT_EQ(difference(*graph, *parse_graph("graph g(%a: f32[n,2*m]) { %0 = exp(%a) return %0 }")), "");
}

const TracedFunction sine_and_cosine = [](Value x) { return std::vector<Value>{sin(x), cos(x)}; };
const TracedFunction by_tangent = [](Value x) {
  const Value t = tanh(x);
  return std::vector<Value>{t, -t};
};

TEST(ReplacePattern, ReplacesSeveralResults) {
  expect_replaced(R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = cos(%a) %1 = neg(%0) %2 = sin(%b) %3 = sin(%a) return %1, %2, %3 })",
                  sine_and_cosine, by_tangent, 1, R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = sin(%b) %1 = tanh(%a) %2 = neg(%1) %3 = neg(%2) return %3, %0, %1 })");
}

TEST(ReplacePattern, ReplacesResultsThatAreMadeOfEachOther) {
  const TracedFunction pattern = [](Value x) {
    const Value y = exp(x);
    return std::vector<Value>{y, relu(y)};
  };
  constexpr std::string_view text =
      "graph g(%a: f32[2]) { %0 = exp(%a) %1 = abs(%0) %2 = relu(%0) return %1, %2 }";
  expect_replaced(text, pattern, by_tangent, 1,
                  "graph g(%a: f32[2]) { %0 = tanh(%a) %1 = neg(%0) %2 = abs(%0) return %2, %1 }");
  // As the only result, it would take away what the other use needs.
  expect_unchanged(
      text, [](Value x) { return relu(exp(x)); }, [](Value x) { return x; });
}

TEST(ReplacePattern, ReplacesAllResultsOfANode) {
  expect_replaced(R"(graph g(%a: f32[4]) {
    %s = constant(value=i64[2] {1, 3}) %0, %1 = split(%a, %s, axis=0) return %1 })",
                  [](Value x) {
                    return split(x, {1, 3}, 0);
                  },
                  [](Value x) {
                    return split(-x, {1, 3}, 0);
                  },
                  1, R"(graph g(%a: f32[4]) {
    %n = neg(%a) %s = constant(value=i64[2] {1, 3}) %0, %1 = split(%n, %s, axis=0) return %1 })");
}

TEST(ReplacePattern, MakesNoCycle) {
  const TracedFunction pattern = [](Value x, Value y) { return std::vector<Value>{sin(x), x * y}; };
  const TracedFunction replacement = [](Value x, Value y) {
    const Value both = x + y;
    return std::vector<Value>{both, -both};
  };
  expect_unchanged("graph g(%a: f32[2]) { %0 = sin(%a) %1 = neg(%0) %2 = mul(%a, %1) return %0, %2 }",
                   pattern, replacement);
  expect_unchanged("graph g(%a: f32[2]) { %0 = sin(%a) %1 = mul(%a, %0) return %0, %1 }", pattern,
                   replacement);
  expect_replaced("graph g(%a: f32[2]) { %0 = sin(%a) %1 = neg(%a) %2 = mul(%a, %1) return %0, %2 }", pattern,
                  replacement, 1,
                  "graph g(%a: f32[2]) { %0 = neg(%a) %1 = add(%a, %0) %2 = neg(%1) return %1, %2 }");
}

TEST(ReplacePattern, TellsOneDrawFromTwo) {
  const TracedFunction one = [](Value x) {
    const Value noise = random_normal(shape_of(x), DType::F32);
    return x + noise * noise;
  };
  const TracedFunction two = [](Value x) {
    return x + random_normal(shape_of(x), DType::F32) * random_normal(shape_of(x), DType::F32);
  };
  const TracedFunction none = [](Value x) { return -x; };
  const auto make = [](const TracedFunction& function) { return trace({f32({3})}, function); };
  EXPECT_EQ(replace_pattern(*make(one), one, none), 1);
  EXPECT_EQ(replace_pattern(*make(two), two, none), 1);
  EXPECT_EQ(replace_pattern(*make(one), two, none), 0);
  EXPECT_EQ(replace_pattern(*make(two), one, none), 0);
}

TEST(ReplacePattern, MayDecline) {
  expect_replaced(
      "graph g(%a: f32[2], %b: i32[2]) { %0 = abs(%a) %1 = abs(%b) return %0, %1 }",
      [](Value x) { return abs(x); }, [](Value x) { return is_float(x.dtype()) ? sqrt(x * x) : Value(); }, 1,
      R"(graph g(%a: f32[2], %b: i32[2]) {
                    %0 = mul(%a, %a) %1 = sqrt(%0) %2 = abs(%b) return %1, %2 })");
}

TEST(ReplacePattern, IsNumberedInTheJournal) {
  const auto graph = parse_graph(R"(graph g(%a: f32[2]) {
    %0 = relu(%a) from "first" %1 = mul(%0, %a) from "second" %2 = relu(%1) %3 = mul(%2, %1) return %3 })");
  Journal journal(NumericsBudget::Default, 1);
  journal.set_pass("own");
  EXPECT_EQ(
      replace_pattern(*graph, {.name = "mine", .pattern = relu_times, .replacement = exp_minus}, journal), 1);
  ASSERT_EQ(journal.applications().size(), 1u);
  const Application& only = journal.applications().front();
  EXPECT_EQ(only.number, 1);
  EXPECT_EQ(only.pass, "own");
  EXPECT_EQ(only.rule, "mine");
  EXPECT_EQ(only.nodes, (std::vector<std::string>{"second", "first"}));
  EXPECT_EQ(graph->first()->sources(), only.nodes);
}

TEST(ReplacePattern, KeepsToTheBudgetOfTheJournal) {
  const auto graph = parse_graph("graph g(%a: f32[2]) { %0 = relu(%a) %1 = mul(%0, %a) return %1 }");
  Journal strict(NumericsBudget::Strict);
  EXPECT_EQ(replace_pattern(*graph, {.pattern = relu_times, .replacement = exp_minus}, strict), 0);
  ASSERT_EQ(strict.remarks().size(), 1u);
  EXPECT_EQ(strict.remarks().begin()->reason, "numerics of the class reassociates are not allowed");
  EXPECT_EQ(
      replace_pattern(
          *graph, {.numerics = Numerics::BitExact, .pattern = relu_times, .replacement = exp_minus}, strict),
      1);
}

TEST(ReplacePattern, RefusesAReplacementOfAnotherType) {
  const auto graph =
      parse_graph(R"(graph g(%a: f32[2,3]) { %0 = relu(%a) %1 = mul(%0, %a) from "gate" return %1 })");
  const std::string before = print(*graph);
  expect_error<UserError>(
      [&] { replace_pattern(*graph, relu_times, [](Value x, Value y) { return reduce_sum(x * y, {0}); }); },
      "node \"gate\": replace-pattern: the result would be f32[3], not f32[2,3]");
  expect_error<UserError>(
      [&] { replace_pattern(*graph, relu_times, [](Value x, Value y) {
              return reshape(x, {4, -1}) * y;
            }); },
      "node \"gate\": replace-pattern: reshape: 6 elements do not divide into [4,-1]\n"
      "  x  %a: f32[2,3]\n  shape: i64[2]");
  expect_error<UserError>(
      [&] { replace_pattern(*graph, relu_times, [](Value x, Value y) {
              return std::vector<Value>{x, y};
            }); },
      "node \"gate\": replace-pattern: the replacement gives 2 results, not 1");
  EXPECT_EQ(print(*graph), before);
}

TEST(ReplacePattern, RefusesWhatCannotBeLookedFor) {
  const auto graph = parse_graph("graph g(%a: f32[2]) { %0 = relu(%a) return %0 }");
  const auto refused = [&](const TracedFunction& pattern, const TracedFunction& replacement,
                           const TracedInputs& inputs = {}) {
    Journal journal;
    replace_pattern(
        *graph, {.name = "mine", .inputs = inputs, .pattern = pattern, .replacement = replacement}, journal);
  };
  const TracedFunction same = [](Value x) { return x; }, first = [](Value x, Value) { return x; };
  const TracedFunction all = [](const std::vector<Value>& values) { return relu(values.front()); };
  expect_error<UserError>([&] { refused(same, same); },
                          "mine: result 0 of the pattern is no op, but an input");
  expect_error<UserError>([&] { refused([](Value x) { return scalar(x.graph(), DType::F32, 1); }, same); },
                          "mine: result 0 of the pattern is no op, but a constant");
  expect_error<UserError>([&] { refused([](Value) { return std::vector<Value>(); }, same); },
                          "mine: the pattern has no result");
  expect_error<UserError>(
      [&] {
        refused(
            [](Value x) {
              const Value y = relu(x);
              return std::vector<Value>{y, y};
            },
            same);
      },
      "mine: result 1 of the pattern is another one, too");
  expect_error<UserError>(
      [&] {
        refused([](Value x, Value y) { return std::vector<Value>{relu(x), relu(y)}; }, first);
      },
      "mine: result 1 of the pattern shares no value with those before it");
  expect_error<UserError>([&] { refused([](Value x, Value) { return relu(x); }, first); },
                          "mine: no result of the pattern is made of its input x1");
  expect_error<UserError>([&] { refused([](Value x) { return relu(x); }, first); },
                          "mine: the pattern takes 1 values, the replacement 2");
  expect_error<UserError>(
      [&] {
        refused([](Value x) { return relu(x); }, same, {f32({2}), f32({2})});
      },
      "mine: the pattern takes 1 values, but 2 inputs are given");
  expect_error<UserError>([&] { refused(all, same); },
                          "mine: a pattern that takes a vector needs inputs to be traced with");
  expect_error<UserError>([&] { refused([](Value x) { return logical_not(x); }, same); },
                          "mine: the pattern cannot be traced with f32 tensors of unknown rank: not: x is "
                          "f32[*], but only bool will do"
                          "\n  hint: give it inputs to be traced with");
  refused(all, same, {f32({2})});
  EXPECT_EQ(graph->node_count(), 0);
}

TEST(FormulaOf, ShowsBothFunctions) {
  EXPECT_EQ(formula_of({.name = "mine", .pattern = relu_times, .replacement = exp_minus}),
            "(relu(x0) * x1) => (exp(x0) - x1)");
}

TEST(FormulaOf, LeavesOutWhatIsTooLong) {
  const TracedFunction squares = [](Value x) {
    for (int i = 0; i < 30; ++i)
      x = x * x;
    return x;
  };
  const std::string formula =
      formula_of({.name = "mine", .pattern = squares, .replacement = [](Value x) { return exp(x); }});
  EXPECT_NE(formula.find(" * …)"), std::string::npos) << formula;
  EXPECT_TRUE(formula.ends_with(" => exp(x)")) << formula;
  EXPECT_LT(formula.size(), 2000U);
}

TEST(FormulaOf, DoesWithoutAReplacementThatAsksForMore) {
  const auto formula_with = [](const std::function<Value(Value)>& replacement) {
    return formula_of(
        {.name = "mine", .pattern = [](Value x) { return exp(x); }, .replacement = replacement});
  };
  EXPECT_EQ(formula_with([](Value) { return Value(); }), "exp(x) => the replacement");
  EXPECT_EQ(formula_with([](Value) -> Value { throw std::out_of_range("no such size"); }),
            "exp(x) => the replacement");
  EXPECT_THROW(formula_with([](Value) -> Value { throw InternalError("ours"); }), InternalError);
}

}  // namespace
}  // namespace tenon
