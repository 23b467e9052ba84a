#include "verify/rewrite_checks.h"

#include <cmath>

#include "frontends/builtin/builtin.h"
#include "ir/graph_text.h"
#include "ops/binary.h"
#include "passes/target/decompose_ops.h"
#include "rewrite/apply.h"
#include "verify/random_inputs.h"
#include "verify/small_sizes.h"

namespace tenon {

namespace {

Verdict verdict(const Tensor& actual, const Tensor& expected, Numerics numerics) {
  return compare_by_class(actual, expected, numerics, 1e-4).verdict;
}

TEST(CompareByClass, BitExactMeansTheSameBits) {
  const Tensor zeros = f32({2}, {0.0, NAN});
  EXPECT_EQ(verdict(zeros, zeros, Numerics::BitExact), Verdict::Passed);
  EXPECT_EQ(verdict(f32({2}, {-0.0, NAN}), zeros, Numerics::BitExact), Verdict::Failed);
  EXPECT_EQ(verdict(f32({1}, {1}), f32({1}, {1 + 0x1p-23}), Numerics::BitExact), Verdict::Failed);
  EXPECT_EQ(verdict(f32({1}, {1}), f32({1, 1}, {1}), Numerics::BitExact), Verdict::Failed);
}

TEST(CompareByClass, ReassociatingMeansWithinRoundingWhereItWasFinite) {
  const Numerics numerics = Numerics::Reassociates;
  EXPECT_EQ(verdict(f32({2}, {1, 2}), f32({2}, {1.00005, INFINITY}), numerics), Verdict::Passed);
  EXPECT_EQ(verdict(f32({2}, {1, INFINITY}), f32({2}, {1, 2}), numerics), Verdict::Failed);
  EXPECT_EQ(verdict(f32({1}, {1}), f32({1}, {1.001}), numerics), Verdict::Failed);
  EXPECT_EQ(verdict(tensor(DType::F16, {1}, {1}), tensor(DType::F16, {1}, {1 + 0x1p-9}), numerics),
            Verdict::Passed);
  EXPECT_EQ(verdict(f32({1}, {1e-4}), f32({1}, {2e-4}), numerics), Verdict::Unknown);
  EXPECT_EQ(verdict(f32({1}, {1}), f32({1}, {0}), numerics), Verdict::Failed);
}

TEST(CompareByClass, OnlyQuantisedIntegersMayMove) {
  const auto moved = [](DType dtype, double by) {
    return verdict(tensor(dtype, {1}, {7 + by}), tensor(dtype, {1}, {7}), Numerics::Reassociates);
  };
  EXPECT_EQ(moved(DType::I8, 1), Verdict::Passed);
  EXPECT_EQ(moved(DType::U8, 2), Verdict::Failed);
  EXPECT_EQ(moved(DType::I64, 1), Verdict::Failed);
}

TEST(CompareByClass, ANarrowerDTypeRoundsMore) {
  EXPECT_EQ(verdict(f32({1}, {1}), f32({1}, {1.01}), Numerics::ChangesPrecision), Verdict::Passed);
  EXPECT_EQ(verdict(f32({1}, {1}), f32({1}, {1.1}), Numerics::ChangesPrecision), Verdict::Failed);
}

std::vector<RewriteCheck> check_all(const Graph& model,
                                    const std::function<void(Graph&, Journal&)>& rewrite) {
  const std::unique_ptr<Graph> graph = with_small_sizes(model);
  std::mt19937_64 random(0);
  const Data inputs = random_inputs(*graph, random);
  Journal journal;
  return check_rewrites(*graph, record_values(*graph, inputs), journal, [&] { rewrite(*graph, journal); });
}

void optimise(Graph& graph, Journal& journal) { optimize(graph, journal); }

TEST(CheckRewrites, FindsNothingWrongWithThePipeline) {
  register_ops();
  for (const builtin::Model& model : builtin::all_models()) {
    int64_t number = 0;
    for (const auto& [application, numbers] : check_all(*model.make(), optimise)) {
      EXPECT_EQ(application.number, ++number);
      EXPECT_NE(numbers.verdict, Verdict::Failed)
          << model.name << ": " << application.rule << " of " << application.pass << ": " << numbers.detail;
    }
  }
}

const Pattern x = any("x");

Rule rule(std::string_view name, const Pattern& match, const Replacement& replace, Numerics numerics) {
  return {.name = name, .match = match, .replace = replace, .numerics = numerics, .fires = "", .stays = ""};
}

std::vector<std::string> failed_rules(const std::vector<RewriteCheck>& checks) {
  std::vector<std::string> rules;
  for (const RewriteCheck& check : checks)
    if (check.numbers.verdict == Verdict::Failed)
      rules.push_back(check.application.rule);
  return rules;
}

// The first rewrite rounds, and what the second replaces was made of it: that is not the second's fault.
TEST(CheckRewrites, RoundingIsOnlyTheConcernOfTheRewriteThatRounds) {
  const auto graph =
      parse_graph("graph g(%a: f32[100]) { %0 = sinh(%a) %1 = neg(%0) %2 = neg(%1) %3 = cos(%2) return %3 }");
  const Rules rules = {rule("sinh-by-exp", unary("sinh", x),
                            (unary("exp", x) - unary("exp", unary("neg", x))) * 0.5, Numerics::Reassociates)};
  const Rules others = {rule("neg-twice", unary("neg", unary("neg", x)), x, Numerics::BitExact),
                        rule("cos-of-magnitude", unary("cos", x), unary("sin", unary("abs", x) + 1.5707964),
                             Numerics::Reassociates)};
  const std::vector<RewriteCheck> checks = check_all(*graph, [&](Graph& g, Journal& journal) {
    apply_rules(g, rules, journal);
    apply_rules(g, others, journal);
  });
  ASSERT_EQ(checks.size(), 3u);
  EXPECT_EQ(failed_rules(checks), std::vector<std::string>());
  EXPECT_GT(checks[0].numbers.error, 0);
}

// New nodes draw what those that they replace drew: each call has its number.
TEST(CheckRewrites, KnowWhatRandomOpsDraw) {
  const auto decompose = [](Graph& graph, Journal& journal) { decompose_ops(graph, journal); };
  const std::vector<RewriteCheck> checks = check_all(*parse_graph(R"(graph g(%a: f32[100]) {
    %s = shape(%a)
    %0 = random_normal(%s, dtype=f32)
    %1 = random_uniform(%s, dtype=f32)
    %2 = random_uniform(%s, dtype=f32, seed=3)
    %3 = random_uniform(%s, dtype=f32)
    return %1, %2, %3
  })"),
                                                     decompose);
  ASSERT_EQ(checks.size(), 4u);
  for (size_t i = 1; i < checks.size(); ++i)
    EXPECT_EQ(checks[i].numbers.verdict, Verdict::Passed) << checks[i].numbers.detail;
}

TEST(CheckRewrites, DoNotJudgeWhatIsDrawnAfterALoopThatDraws) {
  const auto decompose = [](Graph& graph, Journal& journal) { decompose_ops(graph, journal); };
  const std::vector<RewriteCheck> checks = check_all(*parse_graph(R"(graph g(%x: f32[4,3]) {
    %a = scan([], [%x], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]) body(%x: f32[3]) {
      %n = shape(%x)
      %r = random_normal(%n, dtype=f32)
      return %r
    }
    %s = shape(%a)
    %0 = random_uniform(%s, dtype=f32)
    return %a, %0
  })"),
                                                     decompose);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].numbers.verdict, Verdict::Unknown);
}

TEST(CheckRewrites, BlamesEachWrongRewriteOnce) {
  const auto graph = parse_graph(
      "graph g(%a: f32[100]) { %0 = tanh(%a) %1 = exp(%0) %2 = cos(%1) %3 = add(%2, %0) return %3 }");
  const std::vector<RewriteCheck> checks = check_all(*graph, [&](Graph& g, Journal& journal) {
    apply_rules(g, {rule("lose-cos", unary("cos", x), x, Numerics::Reassociates)}, journal);
    apply_rules(g, {rule("lose-tanh", unary("tanh", x), x, Numerics::Reassociates)}, journal);
  });
  EXPECT_EQ(failed_rules(checks), (std::vector<std::string>{"lose-cos", "lose-tanh"}));
}

TEST(CheckRewrites, ARewriteThatCannotRunIsWrong) {
  const auto graph = parse_graph(
      "graph g(%a: f32[4], %i: i64[2]) { %0 = gather(%a, %i) %1 = exp(%0) %2 = exp(%1) return %2 }");
  const std::vector<RewriteCheck> checks = check_all(*graph, [&](Graph& g, Journal& journal) {
    const Node& gather = *g.nodes().front();
    journal.applied("far", {g.nodes().front()}, Numerics::BitExact);
    const InsertAfter here(g.nodes().front());
    const Value far = gather.in("indices") +
                      g.create("constant", {}, {{"value", Literal(tensor(DType::I64, {}, {100}))}})->result();
    const Value y =
        g.create("gather", {{"x", gather.in("x")}, {"indices", far}}, gather.attributes())->result();
    gather.result().replace_all_uses(y);
  });
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks.front().numbers.verdict, Verdict::Failed);
}

// The new node may lie in memory where the old one lay.
TEST(CheckRewrites, ANodeInThePlaceOfAnotherIsNotTakenForIt) {
  const auto graph =
      parse_graph("graph g(%a: f32[3,3]) { %0 = exp(%a) %1 = softmax(%0, axis=0) %2 = exp(%1) return %2 }");
  const std::vector<RewriteCheck> checks = check_all(*graph, [&](Graph& g, Journal& journal) {
    Node *softmax = g.nodes()[1], *user = g.nodes()[2];
    const Value x = softmax->in("x");
    journal.applied("turn", {softmax}, Numerics::BitExact);
    softmax->result().replace_all_uses(x);
    g.erase(softmax);
    const InsertBefore here(user);
    user->set_operand(0, g.create("softmax", {{"x", x}}, {{"axis", int64_t{1}}})->result());
  });
  EXPECT_EQ(failed_rules(checks), std::vector<std::string>{"turn"});
}

}  // namespace
}  // namespace tenon
