#include "rewrite/saturate/explore.h"

#include "rewrite/saturate/region_of.h"

namespace tenon::saturate {
namespace {

const Pattern x = any("x"), y = any("y");

std::vector<Step> explore_with(AsTerms& terms, const Rules& rules, const Limits& limits = {},
                               NumericsBudget budget = NumericsBudget::Default) {
  return explore(terms.egraph, RuleIndex(rules, Journal(budget)), limits);
}

TEST(Explore, KeepsBothSidesOfARewrite) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
  const auto steps = explore_with(terms, {rule("other", unary("exp", x), unary("tanh", x))});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps.front().rule, "other");
  EXPECT_TRUE(has_member(terms.egraph, terms.roots[0], "exp"));
  EXPECT_TRUE(has_member(terms.egraph, terms.roots[0], "tanh"));
}

TEST(Explore, EndsWhereRulesUndoEachOther) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
  const Rules rules = {rule("there", unary("exp", x), unary("tanh", x)),
                       rule("back", unary("tanh", x), unary("exp", x))};
  EXPECT_EQ(explore_with(terms, rules).size(), 1u);
}

TEST(Explore, MatchesThroughAnotherMemberOfAnOperand) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) %1 = neg(%0) return %1 }");
  const Rules rules = {rule("inner", unary("exp", x), unary("tanh", x)),
                       rule("both", -unary("tanh", x), unary("abs", x))};
  explore_with(terms, rules);
  EXPECT_TRUE(has_member(terms.egraph, terms.roots[0], "abs"));
}

TEST(Explore, MatchesThroughAnotherMemberTwoLevelsDown) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) %1 = neg(%0) %2 = relu(%1) return %2 }");
  const Rules rules = {rule("inner", unary("exp", x), unary("tanh", x)),
                       rule("all", unary("relu", -unary("tanh", x)), unary("abs", x))};
  explore_with(terms, rules);
  EXPECT_TRUE(has_member(terms.egraph, terms.roots[0], "abs"));
}

TEST(Explore, MatchesThroughOtherMembersOfAllOperands) {
  AsTerms terms("graph g(%a: f32[2], %b: f32[2]) { %0 = exp(%a) %1 = exp(%b) %2 = add(%0, %1) return %2 }");
  const Rules rules = {rule("inner", unary("exp", x), unary("tanh", x)),
                       rule("sum", unary("tanh", x) + unary("tanh", y), x * y)};
  explore_with(terms, rules);
  EXPECT_TRUE(has_member(terms.egraph, terms.roots[0], "mul"));
}

TEST(Explore, DoesNotMatchWhatNoMemberIs) {
  AsTerms terms("graph g(%a: f32[2], %b: f32[2]) { %0 = exp(%a) %1 = abs(%b) %2 = add(%0, %1) return %2 }");
  const Rules rules = {rule("inner", unary("exp", x), unary("tanh", x)),
                       rule("sum", unary("tanh", x) + unary("tanh", y), x * y)};
  explore_with(terms, rules);
  EXPECT_FALSE(has_member(terms.egraph, terms.roots[0], "mul"));
}

// Where a value is computed for others too, whether a rewrite that computes it again pays is for the cost to
// say.
TEST(Explore, LeavesUsesToTheCost) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) %1 = neg(%0) return %1, %0 }");
  explore_with(terms, {rule("once", -unary("exp", x).once(), unary("abs", x))});
  EXPECT_TRUE(has_member(terms.egraph, terms.roots[0], "abs"));
}

TEST(Explore, KeepsWithinTheNumericsBudget) {
  const Rules rules = {rule("rounds", unary("exp", x), unary("tanh", x), Numerics::Reassociates),
                       rule("assumes", unary("exp", x), unary("abs", x), Numerics::AssumesFinite)};
  const auto found = [&](NumericsBudget budget) {
    AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
    return explore_with(terms, rules, {}, budget).size();
  };
  EXPECT_EQ(found(NumericsBudget::Strict), 0u);
  EXPECT_EQ(found(NumericsBudget::Default), 1u);
  EXPECT_EQ(found(NumericsBudget::Fast), 2u);
}

TEST(Explore, AsksForConditions) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
  Rule never = rule("never", unary("exp", x), unary("tanh", x));
  never.when = {is_integer(x)};
  EXPECT_TRUE(explore_with(terms, {never}).empty());
}

TEST(Explore, RefusesAnotherType) {
  AsTerms terms("graph g(%a: f32[2], %b: f32[2,2]) { %0 = sub(%a, %b) return %0 }");
  EXPECT_TRUE(explore_with(terms, {rule("drop", x - y, x)}).empty());
}

TEST(Explore, StopsAtTheLimitOfMembers) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
  const Rules grows = {rule("grow", unary("exp", x), unary("exp", -unary("neg", x)))};
  explore_with(terms, grows, {.members = 20});
  EXPECT_GE(terms.egraph.member_count(), 20);
  EXPECT_LT(terms.egraph.member_count(), 30);
}

TEST(Explore, DoesNothingPastTheDeadline) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
  const Rules rules = {rule("other", unary("exp", x), unary("tanh", x))};
  EXPECT_TRUE(explore_with(terms, rules, {.deadline = std::chrono::steady_clock::now()}).empty());
}

}  // namespace
}  // namespace tenon::saturate
