#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "frontends/torch/expression.h"

namespace tenon::torch {
namespace {

TEST(TorchExpression, ReadsBothSpellingsOfSymPy) {
  const std::pair<const char*, const char*> expressions[] = {
      {"Symbol('s0', positive=True, integer=True)", "s0"},
      {"Integer(-3)", "-3"},
      {"Add(Mul(Integer(2), Symbol('s0')), Integer(-1))", "2*s0-1"},
      {"2*s0 - 1", "2*s0-1"},
      {"(s0 + 1)*s1", "s0*s1+s1"},
      {"s0**2", "s0*s0"},
      {"Pow(Symbol('s0', integer=True), Integer(2))", "s0*s0"},
      {"torch.utils._sympy.functions.FloorDiv(Symbol('s0'), Integer(2))", "floor(s0/2)"},
      {"s0//2", "floor(s0/2)"},
      {"Mod(s0, 4)", "mod(s0,4)"},
      {"Max(1, s0)", "max(s0,1)"},
      {"Min(s0, s1, 3)", "min(min(s0,s1),3)"},
  };
  for (const auto& [theirs, ours] : expressions)
    EXPECT_EQ(parse_expression(theirs), Dim::parse(ours)) << theirs;
}

TEST(TorchExpression, LeavesUnknownWhatNoSizeCanSay) {
  for (const char* text : {"floor(s0)", "Rational(1, 2)", "s0**s1", "s0/2", "Where(s0, s1, s2)"})
    EXPECT_TRUE(parse_expression(text).is_unknown()) << text;
}

TEST(TorchExpression, RefusesWhatIsNoExpression) {
  for (const std::string text :
       {"", "s0 +", "(s0", "Symbol('s0", "Symbol(s0)", "s0 s1", "Add()", "99999999999999999999", "'"})
    expect_error<UserError>([&] { parse_expression(text); },
                            fmt::format("\"{}\" is no size that we can read", text));
  const std::string deep = std::string(10000, '(') + "1" + std::string(10000, ')');
  EXPECT_THROW(parse_expression(deep), UserError);
}

}  // namespace
}  // namespace tenon::torch
