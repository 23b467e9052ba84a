#include "rewrite/saturate/extract.h"

#include <cmath>

#include "rewrite/saturate/derive.h"
#include "rewrite/saturate/region_of.h"

namespace tenon::saturate {
namespace {

const Pattern x = any("x"), y = any("y");

// One node each, but for what is given.
CostModel nodes_with(std::map<std::string, double> expensive = {}) {
  return [expensive](const EGraph& egraph, TermId id) {
    const Term& term = egraph.term(id);
    if (term.op == nullptr || term.is_fixed)
      return Cost();
    const auto it = expensive.find(std::string(term.op->name));
    return Cost{.nodes = it == expensive.end() ? 1 : it->second, .bytes = 8, .work = 1};
  };
}

std::vector<std::string> ops_of(const EGraph& egraph, ValueId value) {
  std::vector<std::string> ops;
  for (const Term* term = &egraph.maker(value); term->op != nullptr;
       term = &egraph.maker(operands_of(*term).front()))
    ops.emplace_back(term->op->name);
  return ops;
}

TEST(Extract, TakesTheCheaperMember) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) %2 = exp(%1) return %2 }");
  explore(terms.egraph, RuleIndex({rule("twice", -(-x), x)}, Journal()), {});
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, nodes_with());
  EXPECT_EQ(best.before.nodes, 3);
  EXPECT_EQ(best.after.nodes, 1);
  EXPECT_EQ(ops_of(terms.egraph, build(terms.egraph, best.choice, terms.roots)[0]),
            std::vector<std::string>{"exp"});
}

TEST(Extract, KeepsWhatThereIsWhereNothingIsCheaper) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
  explore(terms.egraph, RuleIndex({rule("grow", unary("exp", x), unary("tanh", -x))}, Journal()), {});
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, nodes_with());
  EXPECT_FALSE(is_better(best.after, best.before));
  EXPECT_EQ(build(terms.egraph, best.choice, terms.roots), terms.roots);
}

// Alone, each sum is as cheap as a product; but both products share a node.
TEST(Extract, CountsWhatIsSharedOnce) {
  AsTerms terms(R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = sub(%a, %b) %1 = sin(%0) %2 = cos(%a) %3 = cos(%b) %4 = add(%2, %3) return %1, %4 })");
  explore(terms.egraph,
          RuleIndex({rule("share", unary("cos", x) + unary("cos", y), unary("tanh", x - y))}, Journal()), {});
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, nodes_with());
  EXPECT_EQ(best.before.nodes, 5);
  EXPECT_EQ(best.after.nodes, 3);  // a - b, its sine and its tanh
}

TEST(Extract, MakesNothingOfItself) {
  // x + 0 = x puts the sum and what it is made of in one class.
  AsTerms terms(R"(graph g(%a: f32[2]) {
    %z = constant(value=f32[] {0}) %0 = exp(%a) %1 = add(%0, %z) %2 = neg(%1) return %2 })");
  explore(terms.egraph, RuleIndex({rule("zero", x + 0.0, x)}, Journal()), {});
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, nodes_with());
  EXPECT_TRUE(std::isfinite(best.after.nodes));
  EXPECT_EQ(best.after.nodes, 2);
  EXPECT_EQ(ops_of(terms.egraph, build(terms.egraph, best.choice, terms.roots)[0]),
            (std::vector<std::string>{"neg", "exp"}));
}

TEST(Extract, NeverTakesMoreWork) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = neg(%a) %1 = exp(%0) return %1 }");
  explore(terms.egraph, RuleIndex({rule("join", unary("exp", -x), unary("tanh", x))}, Journal()), {});
  const CostModel cost = [](const EGraph& egraph, TermId id) {
    const Term& term = egraph.term(id);
    if (term.op == nullptr)
      return Cost();
    return Cost{.nodes = 1, .bytes = 8, .work = term.op->name == std::string_view("tanh") ? 100.0 : 1.0};
  };
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, cost);
  EXPECT_FALSE(is_better(best.after, best.before));
}

TEST(Extract, PrefersFewerBytesAmongAsManyNodes) {
  EXPECT_TRUE(is_better({.nodes = 2, .bytes = 8, .work = 1}, {.nodes = 2, .bytes = 16, .work = 1}));
  EXPECT_FALSE(is_better({.nodes = 2, .bytes = 16, .work = 1}, {.nodes = 2, .bytes = 16, .work = 1}));
  EXPECT_TRUE(is_better({.nodes = 1, .bytes = 16, .work = 1}, {.nodes = 2, .bytes = 8, .work = 1}));
  EXPECT_FALSE(is_better({.nodes = 1, .bytes = 8, .work = 2}, {.nodes = 2, .bytes = 8, .work = 1}));
}

// --- derivations ---

TEST(Derive, NamesEachRewriteInOrderAndStopsAfterAny) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) %1 = abs(%0) %2 = neg(%1) return %2 }");
  const Rules rules = {rule("first", unary("exp", x), unary("tanh", x)),
                       rule("second", unary("abs", unary("tanh", x)), unary("sin", x)),
                       rule("third", -unary("sin", x), unary("cos", x)),
                       rule("useless", unary("cos", x), unary("relu", unary("cos", x)))};
  const auto steps = explore(terms.egraph, RuleIndex(rules, Journal()), {});
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, nodes_with());
  Derivation derivation(terms.egraph, steps, terms.roots, build(terms.egraph, best.choice, terms.roots));
  ASSERT_TRUE(derivation.is_sound());
  std::vector<std::string_view> names;
  for (int step : derivation.rewrites())
    names.push_back(steps[static_cast<size_t>(step)].rule);
  EXPECT_EQ(names, (std::vector<std::string_view>{"first", "second", "third"}));
  const auto after = [&](int64_t count) { return ops_of(terms.egraph, derivation.after(count)[0]); };
  EXPECT_EQ(after(0), (std::vector<std::string>{"neg", "abs", "exp"}));
  EXPECT_EQ(after(1), (std::vector<std::string>{"neg", "abs", "tanh"}));
  EXPECT_EQ(after(2), (std::vector<std::string>{"neg", "sin"}));
  EXPECT_EQ(after(3), (std::vector<std::string>{"cos"}));
}

// Two values become one by way of a third: one of the rewrites is needed the other way round.
TEST(Derive, RefusesARewriteBackwardsThatIsNotExact) {
  const auto is_sound = [&](Numerics numerics) {
    AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) %1 = sin(%a) return %0, %1 }");
    const auto steps = explore(terms.egraph,
                               RuleIndex({rule("one", unary("exp", x), unary("tanh", x), numerics),
                                          rule("other", unary("sin", x), unary("tanh", x), numerics)},
                                         Journal()),
                               {});
    EXPECT_EQ(terms.egraph.find(terms.roots[0]), terms.egraph.find(terms.roots[1]));
    return Derivation(terms.egraph, steps, {terms.roots[0]}, {terms.roots[1]}).is_sound();
  };
  EXPECT_TRUE(is_sound(Numerics::BitExact));
  EXPECT_FALSE(is_sound(Numerics::Reassociates));
}

TEST(Derive, MakesARewriteOnceForAllThatNeedIt) {
  AsTerms terms("graph g(%a: f32[2]) { %0 = exp(%a) %1 = abs(%0) %2 = neg(%0) return %1, %2 }");
  const auto steps = explore(terms.egraph, RuleIndex({rule("shared", unary("exp", x), x)}, Journal()), {});
  const Extraction best = extract(terms.egraph, terms.roots, terms.terms, nodes_with());
  Derivation derivation(terms.egraph, steps, terms.roots, build(terms.egraph, best.choice, terms.roots));
  EXPECT_TRUE(derivation.is_sound());
  EXPECT_EQ(derivation.rewrites().size(), 1u);
}

}  // namespace
}  // namespace tenon::saturate
