// What verification took for wrong, and what is wrong in the same places.
#include "ir/graph_text.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "rewrite/apply.h"
#include "verify/random_inputs.h"
#include "verify/verify.h"

namespace tenon {
namespace {

std::string failures_of(const std::vector<PassVerification>& results) {
  std::string text;
  for (const PassVerification& result : results)
    for (const Check* check : {&result.numbers, &result.gradients, &result.lint, &result.parameters})
      if (check->verdict == Verdict::Failed)
        text += result.pass + ": " + check->detail + "\n";
  return text;
}

// Verifies the model, which some pass must change, and gives the last row.
PassVerification expect_no_alarm(std::string_view text) {
  const std::vector<PassVerification> results = verify_pipeline(*parse_graph(text));
  EXPECT_GT(results.size(), 1u);
  EXPECT_EQ(failures_of(results), "");
  return results.back();
}

PassVerification verify_wrong(std::string_view text, const std::function<void(Graph&)>& rewrite) {
  return verify_pass(*parse_graph(text), {"wrong", "", [&](Graph& graph, Journal&) { rewrite(graph); }, ""});
}

Node* find(Graph& graph, std::string_view op) {
  const std::vector<Node*> nodes = graph.nodes();
  const auto it = std::ranges::find_if(nodes, [&](const Node* node) { return node->is(op); });
  EXPECT_NE(it, nodes.end());
  return *it;
}

// --- parameters ---

constexpr std::string_view kSharedWeights = R"(graph g(%a: f32[2,3], %b: f32[2,3]) {
  %w = parameter(name="w", value=f32[3,4] {1, 2, -1, 0.5, 3, 0.25, -2, 1, 0.5, 0.75, 1, 2})
  %s = parameter(name="s", value=f32[4] {1, 2, 3, 4}) %t = parameter(name="t", value=f32[4] {4, 1, 2, 0.5})
  %0 = matmul(%a, %w) %1 = mul(%0, %s) %2 = matmul(%b, %w) %3 = mul(%2, %t) %4 = sub(%1, %3) return %4 })";

TEST(FalseAlarms, SharedWeightsMayBecomeSomethingElseForEachReader) {
  const PassVerification all = expect_no_alarm(kSharedWeights);
  EXPECT_EQ(all.parameters.verdict, Verdict::Passed);
}

TEST(FalseAlarms, ButNotMoreThanNodesRead) {
  const PassVerification result = verify_wrong(kSharedWeights, [](Graph& graph) {
    Value more = graph.outputs()[0];
    for (double sign : {1.0, 2.0, 3.0, 4.0})
      more = more +
             matmul(graph.input(0), constant(graph, f32({3, 4}, {sign, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}))) *
                 1e-9;
    graph.set_outputs({more}, graph.output_names());
  });
  EXPECT_EQ(result.parameters.detail, "32 numbers became 68");
}

// What QLinearConv is read as: its bias is i32, and a float once it is scaled.
TEST(FalseAlarms, IntegerBiasesBecomeFloats) {
  const PassVerification all = expect_no_alarm(R"(graph g(%x: u8[2,3]) {
    %w = parameter(name="w", value=i8[3,4] {1, 2, -1, 5, 3, 25, -2, 1, 5, 75, 1, 2})
    %b = parameter(name="b", value=i32[4] {100, -200, 300, 400}) %s = parameter(name="s", value=f32[] {0.01})
    %0 = cast(%x, to=i32) %1 = cast(%w, to=i32) %2 = matmul(%0, %1) %3 = add(%2, %b) %4 = cast(%3, to=f32)
    %5 = mul(%4, %s) return %5 })");
  EXPECT_EQ(all.parameters.verdict, Verdict::Passed);
}

TEST(FalseAlarms, ButIntegersThatAddToIndicesAreNoBiases) {
  EXPECT_EQ(count_held_numbers(*parse_graph(R"(graph g(%x: u8[2,3], %i: i32[4]) {
    %w = constant(value=i8[3,4] {1, 2, -1, 5, 3, 25, -2, 1, 5, 75, 1, 2}) %b = constant(value=i32[4] {1, 2, 3, 4})
    %0 = cast(%x, to=i32) %1 = cast(%w, to=i32) %2 = matmul(%0, %1) %3 = add(%i, %b) return %2, %3 })")),
            12);
}

TEST(FalseAlarms, UnrolledLoopsReadTheirWeightsMoreOften) {
  expect_no_alarm(R"(graph g(%a: f32[2,3]) {
    %n = constant(value=i64[] {3})
    %0 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[2,3]) {
      %w = constant(value=f32[3,3] {1, -2, 0.5, 0.25, 1, 2, 0.5, 1, -1}) %b = constant(value=f32[3] {1, 2, 3})
      %t = constant(value=f32[3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9}) %row = gather(%t, %i)
      %s = mul(%w, %row) %y = matmul(%x, %s) %z = add(%y, %b) %u = tanh(%z)
      %go = constant(value=bool[] {1}) return %go, %u }
    return %0 })");
}

TEST(FalseAlarms, BranchesThatLearnSizesHoldNoMore) {
  expect_no_alarm(R"(graph g(%c: bool[], %a: f32[4,4]) {
    %0 = if(%c, [%a]) then(%x: f32[n,n]) {
        %s = shape(%x) %o = constant(value=f32[] {1}) %1 = broadcast(%o, %s) %2 = triangle(%1, upper=true)
        %3 = add(%x, %2) return %3 }
      else(%x: f32[n,n]) { %1 = tanh(%x) return %1 }
    return %0 })");
}

TEST(FalseAlarms, TwoMasksMayBecomeOne) {
  const PassVerification all =
      expect_no_alarm(R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,8,16], %v: f32[2,4,8,5]) {
    %s = matmul(%q, %k, transpose_b=true) %slopes = constant(value=f32[4,1,1] {0.5, 0.25, 0.125, 0.0625})
    %places = constant(value=f32[8] {0, 1, 2, 3, 4, 5, 6, 7}) %bias = mul(%slopes, %places)
    %o = constant(value=f32[8,8] splat -1e9) %later = triangle(%o, upper=true, diagonal=1)
    %a = add(%s, %bias) %b = add(%a, %later) %p = softmax(%b) %y = matmul(%p, %v) return %y })");
  EXPECT_EQ(all.parameters.verdict, Verdict::Passed);
  EXPECT_EQ(all.numbers.verdict, Verdict::Passed);
}

TEST(FalseAlarms, ALostParameterIsWrong) {
  const PassVerification result = verify_wrong(kSharedWeights, [](Graph& graph) {
    const Value lost = find(graph, "mul")->result();
    lost.replace_all_uses(lost.node()->in("a"));
  });
  EXPECT_EQ(result.numbers.verdict, Verdict::Failed);
  EXPECT_EQ(result.gradients.verdict, Verdict::Failed);
}

// --- what rounding decides ---

// 0.3 of 5 steps is just between two, so that rounding decides where it goes.
constexpr std::string_view kQuantised = R"(graph g(%x: f32[64,16]) {
  %s = constant(value=f32[] {0.03125}) %c = constant(value=f32[] {0.1}) %d = constant(value=f32[] {3})
  %q = quantize(%x, %s, to=i8) %0 = dequantize(%q, %s, to=f32) %1 = mul(%0, %c) %2 = mul(%1, %d)
  %r = quantize(%2, %s, to=i8) %3 = dequantize(%r, %s, to=f32) return %3 as "y", %r as "r" })";

TEST(FalseAlarms, QuantisedNumbersFlip) {
  const PassVerification all = expect_no_alarm(kQuantised);
  EXPECT_EQ(all.numbers.verdict, Verdict::Passed) << all.numbers.detail;
  EXPECT_EQ(all.numbers.rounding, (std::vector<std::string>{"y", "r"}));
}

TEST(FalseAlarms, AWrongScaleIsWrong) {
  for (double wrong : {0.034, 0.0316}) {
    const PassVerification result = verify_wrong(kQuantised, [&](Graph& graph) {
      Node* dequantize = find(graph, "dequantize");
      const InsertBefore here(dequantize);
      dequantize->set_operand(1, scalar(graph, DType::F32, wrong));
    });
    EXPECT_EQ(result.numbers.verdict, Verdict::Failed) << wrong;
  }
}

TEST(FalseAlarms, RoundingIsNoExcuseUnderStrictNumerics) {
  const auto merge_factors = [](Graph& graph, Journal&) {
    Node* second = find(graph, "mul")->result().users().front();
    const InsertAfter here(second);
    const Value merged = second->in("a").node()->in("a") * 0.3;
    second->result().replace_all_uses(merged);
  };
  const auto verdict_under = [&](NumericsBudget numerics) {
    VerifyOptions options;
    options.numerics = numerics;
    return verify_pass(*parse_graph(kQuantised), {"merge", "", merge_factors, ""}, options).numbers.verdict;
  };
  EXPECT_EQ(verdict_under(NumericsBudget::Default), Verdict::Passed);
  EXPECT_EQ(verdict_under(NumericsBudget::Strict), Verdict::Failed);
}

// The sum with 120 leaves few bits of x in f16, and what is left depends on how it is rounded.
constexpr std::string_view kHalves = R"(graph g(%x: f16[64]) {
  %c = constant(value=f16[] {120}) %0 = add(%x, %c) %1 = sub(%0, %c) %2 = tanh(%1) return %2 })";

TEST(FalseAlarms, HalvesThatCancelAreRounded) {
  const auto lose_roundings = [](Graph& graph) {
    const Node* sub = find(graph, "sub");
    sub->result().replace_all_uses(graph.input(0));
  };
  const PassVerification result = verify_wrong(kHalves, lose_roundings);
  EXPECT_NE(result.numbers.verdict, Verdict::Failed) << result.numbers.detail;
  EXPECT_GT(result.numbers.rounding.size() + result.numbers.unsteady.size(), 0u);
}

TEST(FalseAlarms, HalvesThatAreWrongAreWrong) {
  const auto add_more = [](Graph& graph) {
    Node* sub = find(graph, "sub");
    const InsertAfter here(sub);
    const Value more = graph.input(0) + 2.0;
    sub->result().replace_all_uses(more);
  };
  EXPECT_EQ(verify_wrong(kHalves, add_more).numbers.verdict, Verdict::Failed);
}

// --- queries that see nothing ---

std::string masked(std::string_view how) {
  return fmt::format(
      R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,8,16], %v: f32[2,4,8,5], %m: bool[2,1,8,8], %c: bool[8,8]) {{
    %s = matmul(%q, %k, transpose_b=true) {} %p = softmax(%z) %y = matmul(%p, %v) return %y }})",
      how);
}

TEST(FalseAlarms, QueriesThatSeeNothing) {
  expect_no_alarm(masked("%low = constant(value=f32[] {-inf}) %b = and(%m, %c) %z = where(%b, %s, %low)"));
  for (std::string_view low : {"-1e9", "-3.4e38", "-10000"}) {
    const std::string constant = fmt::format("%low = constant(value=f32[] {{{}}}) ", low);
    if (low != "-10000")  // too high a score for what is chosen by a condition
      expect_no_alarm(masked(constant + "%0 = where(%m, %s, %low) %z = where(%c, %0, %low)"));
    expect_no_alarm(masked(constant + R"(%f = constant(value=f32[] {0.25}) %h = mul(%s, %f)
      %0 = constant(value=f32[] {0}) %1 = where(%m, %0, %low) %2 = where(%c, %0, %low) %3 = add(%h, %1)
      %z = add(%3, %2))"));
  }
}

// The same where the user's own masks are such: scores of -1e9 have lost what told them apart.
TEST(FalseAlarms, QueriesThatAreGivenNothingToSee) {
  const auto graph =
      parse_graph(masked(R"(%low = constant(value=f32[] {-1e9}) %f = constant(value=f32[] {0.25})
    %h = mul(%s, %f) %0 = constant(value=f32[] {0}) %1 = where(%m, %0, %low) %2 = where(%c, %0, %low)
    %3 = add(%h, %1) %z = add(%3, %2))"));
  std::mt19937_64 random(0);
  VerifyOptions options;
  options.inputs = random_inputs(*graph, random);
  const auto hide_first_row = [](const Tensor& mask) {
    std::vector<int64_t> numbers = widen<int64_t>(mask);
    std::fill_n(numbers.begin(), 8, 0);
    return narrow<int64_t>(DType::Bool, mask.extents(), numbers);
  };
  for (size_t mask : {3, 4})
    (*options.inputs)[mask] = hide_first_row((*options.inputs)[mask].tensor());
  const std::vector<PassVerification> results = verify_pipeline(*graph, options);
  EXPECT_EQ(failures_of(results), "");
  EXPECT_EQ(results.back().numbers.verdict, Verdict::Passed);
  EXPECT_EQ(results.back().numbers.rounding, std::vector<std::string>{"y"});
}

// A row of the mask is hidden, whatever is drawn.
TEST(FalseAlarms, WhatWasNaNMayBecomeANumber) {
  const PassVerification all = expect_no_alarm(
      R"(graph g(%q: f32[1,1,4,16], %k: f32[1,1,4,16], %v: f32[1,1,4,5]) {
    %s = matmul(%q, %k, transpose_b=true) %low = constant(value=f32[] {-inf})
    %m = constant(value=bool[4,4] {1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 0, 0})
    %z = where(%m, %s, %low) %p = softmax(%z) %y = matmul(%p, %v) return %y })");
  EXPECT_EQ(all.numbers.was_nan, std::vector<std::string>{"y"});
}

TEST(FalseAlarms, ADroppedMaskIsWrong) {
  const std::string choice =
      masked("%low = constant(value=f32[] {-1e9}) %0 = where(%m, %s, %low) %z = where(%c, %0, %low)");
  const std::string sum = masked(R"(%low = constant(value=f32[] {-1e9}) %0 = constant(value=f32[] {0})
    %1 = where(%m, %0, %low) %2 = where(%c, %0, %low) %3 = add(%s, %1) %z = add(%3, %2))");
  const PassVerification chosen = verify_wrong(choice, [](Graph& graph) {
    const Node* where = find(graph, "where");
    where->result().replace_all_uses(where->in("a"));
  });
  EXPECT_EQ(chosen.numbers.verdict, Verdict::Failed);
  const PassVerification added = verify_wrong(sum, [](Graph& graph) {
    const Node* add = find(graph, "add");
    add->result().replace_all_uses(add->in("a"));
  });
  EXPECT_EQ(added.numbers.verdict, Verdict::Failed);
}

// An infinity that becomes a number is wrong, where a NaN is none.
TEST(FalseAlarms, AMaskedOutputStaysMasked) {
  const PassVerification result = verify_wrong(
      R"(graph g(%x: f32[8]) { %m = constant(value=bool[8] {1, 0, 1, 1, 0, 1, 1, 1})
        %low = constant(value=f32[] {-inf}) %0 = exp(%x) %1 = where(%m, %0, %low) return %1 })",
      [](Graph& graph) {
        const Node* where = find(graph, "where");
        graph.set_outputs({where->in("a")}, graph.output_names());
      });
  EXPECT_EQ(result.numbers.verdict, Verdict::Failed);
}

// --- inputs and sizes that fit ---

TEST(RandomInputs, IdsFitTablesThatTheyReachByArithmetic) {
  expect_no_alarm(R"(graph g(%ids: i64[5]) {
    %t = constant(value=f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}) %two = constant(value=i64[] {2}) %0 = add(%ids, %two)
    %1 = gather(%t, %0) %one = constant(value=f32[] {1}) %2 = mul(%1, %one) return %2 })");
}

}  // namespace
}  // namespace tenon
