#include "rewrite/saturate/egraph.h"

#include <gtest/gtest.h>

#include "ops/registry.h"
#include "rewrite/saturate/candidate.h"

namespace tenon::saturate {
namespace {

class EGraphTest : public testing::Test {
 protected:
  EGraphTest() {
    register_ops();
    for (ValueId* leaf : {&x, &y, &z})
      *leaf = egraph.value(egraph.add(opaque_term(graph.add_input(type, fmt::format("v{}", inputs++)))), 0);
  }

  ValueId make(std::string_view op, const std::vector<std::pair<std::string_view, ValueId>>& operands) {
    Term term = {.op = find_op(op), .types = {type}};
    for (const auto& [name, value] : operands)
      term.operands.push_back({name, {value}});
    return egraph.value(egraph.add(std::move(term)), 0);
  }
  ValueId neg(ValueId value) { return make("neg", {{"x", value}}); }
  ValueId add(ValueId a, ValueId b) { return make("add", {{"a", a}, {"b", b}}); }
  ValueId sub(ValueId a, ValueId b) { return make("sub", {{"a", a}, {"b", b}}); }
  bool are_equal(ValueId a, ValueId b) const { return egraph.find(a) == egraph.find(b); }

  const Type type = Type::tensor(DType::F32, {Dim(2)});
  Graph graph{"leaves"};
  int inputs = 0;
  EGraph egraph;
  ValueId x, y, z;
};

TEST_F(EGraphTest, HoldsEachTermOnce) {
  EXPECT_EQ(neg(x), neg(x));
  EXPECT_EQ(add(x, neg(y)), add(x, neg(y)));
  EXPECT_NE(neg(x), neg(y));
  EXPECT_NE(sub(x, y), sub(y, x));
  EXPECT_EQ(egraph.member_count(), 3 + 2 + 1 + 2);  // x, y and z; -x and -y; x + -y; both differences
}

TEST_F(EGraphTest, TellsAttributesApart) {
  const auto with_axes = [&](std::vector<int64_t> axes) {
    return egraph.add({.op = find_op("squeeze"),
                       .attributes = {{"axes", axes}},
                       .operands = {{"x", {x}}},
                       .types = {type}});
  };
  EXPECT_EQ(with_axes({0}), with_axes({0}));
  EXPECT_NE(with_axes({0}), with_axes({1}));
}

TEST_F(EGraphTest, FindsSumsInEitherOrder) {
  EXPECT_TRUE(are_equal(add(x, y), add(y, x)));
  EXPECT_FALSE(are_equal(sub(x, y), sub(y, x)));
}

TEST_F(EGraphTest, EqualOperandsMakeEqualResults) {
  const ValueId of_x = neg(neg(x)), of_y = neg(neg(y));
  EXPECT_FALSE(are_equal(of_x, of_y));
  EXPECT_TRUE(egraph.unite(x, y, 0));
  egraph.rebuild();
  EXPECT_TRUE(are_equal(of_x, of_y));
  EXPECT_FALSE(are_equal(of_x, x));
  EXPECT_EQ(egraph.members(egraph.find(of_x)).size(), 1u);  // one stands for both
}

TEST_F(EGraphTest, LaterTermsAreCongruentAtOnce) {
  egraph.unite(x, y, 0);
  egraph.rebuild();
  EXPECT_TRUE(are_equal(add(x, z), add(z, y)));
}

TEST_F(EGraphTest, UnitesThroughSeveralLevels) {
  // x = -y, so that -(-x) = -(-(-y)); then y = x: all of it is one class.
  const ValueId twice = neg(neg(x)), thrice = neg(neg(neg(y)));
  egraph.unite(x, neg(y), 0);
  egraph.rebuild();
  EXPECT_TRUE(are_equal(twice, thrice));
  EXPECT_FALSE(are_equal(twice, x));
  egraph.unite(x, y, 1);
  egraph.rebuild();
  EXPECT_TRUE(are_equal(twice, x));
}

TEST_F(EGraphTest, UnitingTwiceChangesNothing) {
  EXPECT_TRUE(egraph.unite(x, y, 0));
  EXPECT_FALSE(egraph.unite(y, x, 1));
  EXPECT_EQ(egraph.reasons(x, y).size(), 1u);
  EXPECT_EQ(egraph.reasons(x, y).front().step, 0);
}

TEST_F(EGraphTest, GivesTheReasonsFromOneValueToAnother) {
  egraph.unite(x, y, 7);
  egraph.unite(z, y, 8);
  const std::vector<Link> links = egraph.reasons(x, z);
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].from, x);
  EXPECT_EQ(links[0].to, y);
  EXPECT_EQ(links[0].step, 7);
  EXPECT_TRUE(links[0].forward);
  EXPECT_EQ(links[1].from, y);
  EXPECT_EQ(links[1].to, z);
  EXPECT_EQ(links[1].step, 8);
  EXPECT_FALSE(links[1].forward);  // z was rewritten to y, not y to z
}

TEST_F(EGraphTest, ReasonsKeepTheirDirectionWhenTreesAreTurned) {
  const ValueId a = neg(x), b = neg(y), c = neg(z), d = neg(neg(z));
  egraph.unite(a, b, 0);
  egraph.unite(c, d, 1);
  egraph.unite(b, c, 2);
  std::vector<int> steps;
  for (const Link& link : egraph.reasons(a, d)) {
    steps.push_back(link.step);
    EXPECT_TRUE(link.forward);
  }
  EXPECT_EQ(steps, (std::vector<int>{0, 2, 1}));
  ASSERT_EQ(egraph.reasons(d, a).size(), 3u);
  EXPECT_FALSE(egraph.reasons(d, a).front().forward);
}

TEST_F(EGraphTest, NeverMergesWhatStandsForItselfAlone) {
  Graph other("other");
  const Value p = other.add_input(type, "p"), q = other.add_input(type, "q");
  EXPECT_EQ(egraph.add(opaque_term(p)), egraph.add(opaque_term(p)));
  EXPECT_NE(egraph.add(opaque_term(p)), egraph.add(opaque_term(q)));
}

}  // namespace
}  // namespace tenon::saturate
