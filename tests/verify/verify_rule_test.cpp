#include "verify/verify_rule.h"

#include "base/expect_error.h"
#include "ops/binary.h"
#include "ops/gather.h"
#include "ops/registry.h"
#include "ops/unary.h"
#include "rewrite/pattern.h"

namespace tenon {
namespace {

RuleVerification verify(TracedInputs inputs, TracedFunction pattern, TracedFunction replacement,
                        Numerics numerics = Numerics::Reassociates) {
  register_ops();
  return verify_rule({.name = "rule",
                      .numerics = numerics,
                      .inputs = std::move(inputs),
                      .pattern = std::move(pattern),
                      .replacement = std::move(replacement)});
}

const Type kAny = f32(Shape::unranked());

TEST(VerifyRule, PassesOneThatOnlyRounds) {
  const RuleVerification result = verify(
      {kAny, kAny}, [](Value x, Value y) { return exp(x) * exp(y); },
      [](Value x, Value y) { return exp(x + y); });
  EXPECT_EQ(result.verdict, Verdict::Passed) << describe(result);
  EXPECT_EQ(result.dtypes, (std::vector{DType::F32, DType::F64, DType::F16, DType::BF16}));
  EXPECT_FALSE(result.counterexample);
}

TEST(VerifyRule, SaysWhatARuleThatPromisesTooMuchHoldsAs) {
  const RuleVerification result = verify(
      {kAny, kAny}, [](Value x, Value y) { return exp(x) * exp(y); },
      [](Value x, Value y) { return exp(x + y); }, Numerics::BitExact);
  EXPECT_EQ(result.verdict, Verdict::Failed);
  EXPECT_EQ(result.holds_as, Numerics::Reassociates);
}

TEST(VerifyRule, ShowsASmallCounterexample) {
  const RuleVerification result = verify(
      {kAny}, [](Value x) { return abs(x); }, [](Value x) { return x * 1.0; });
  ASSERT_EQ(result.verdict, Verdict::Failed);
  EXPECT_EQ(result.holds_as, std::nullopt);
  const RuleCounterexample& found = *result.counterexample;
  EXPECT_EQ(to_string(found.before->input(0).type()), "f32[1]");
  EXPECT_EQ(as_double(found.expected[0].tensor()), -as_double(found.actual[0].tensor()));
}

TEST(VerifyRule, FindsWhatOnlyIntegersShow) {
  const TracedFunction same = [](Value x) { return x * 1.0; };
  EXPECT_EQ(verify(
                {kAny}, [](Value x) { return floor(x * 0.5) * 2.0; }, same)
                .verdict,
            Verdict::Failed);
  EXPECT_EQ(verify(
                {i64({Dim::symbol("n")})}, [](Value x) { return abs(x); }, same)
                .verdict,
            Verdict::Failed);
}

TEST(VerifyRule, KeepsIndicesWithinTheirTable) {
  const TracedInputs inputs = {f32({Dim::symbol("n"), Dim::symbol("m")}), i64({Dim::symbol("k")})};
  const auto rows_of_double = [](Value table, Value rows) { return gather(table * 2.0, rows, 0); };
  const auto doubled_rows = [](Value table, Value rows) { return gather(table, rows, 0) * 2.0; };
  EXPECT_EQ(verify(inputs, rows_of_double, doubled_rows, Numerics::BitExact).verdict, Verdict::Passed);
  EXPECT_EQ(
      verify(inputs, rows_of_double, [](Value table, Value rows) { return gather(table, rows, 0); }).verdict,
      Verdict::Failed);
}

TEST(VerifyRule, KnowsNothingOfOneThatLeavesAllAlone) {
  const RuleVerification result = verify(
      {kAny}, [](Value x) { return exp(x); }, [](Value) { return Value(); });
  EXPECT_EQ(result.verdict, Verdict::Unknown);
  EXPECT_EQ(
      describe(result),
      "rule: exp(x) => the replacement\n"
      "unknown: the rule rewrites none of the graphs that were drawn, or nothing in them could be compared\n"
      "  hint: give types for its inputs, such as f32[n,8]\n");
}

TEST(VerifyRule, RefusesAPatternThatCannotBeLookedFor) {
  expect_error<UserError>(
      [] {
        verify(
            {kAny}, [](Value x) { return x; }, [](Value x) { return x; });
      },
      "rule: result 0 of the pattern is no op, but an input");
}

}  // namespace
}  // namespace tenon
