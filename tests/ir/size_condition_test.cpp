#include "ir/size_condition.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "ir/parse.h"
#include "ir/size_checks.h"
#include "ops/registry.h"

namespace tenon {
namespace {

using Kind = SizeCondition::Kind;

std::vector<SizeCondition> conditions_of(const std::string& text) {
  register_ops();
  return SizeChecks(*parse(text)).conditions();
}

// Each as "a KIND b".
std::vector<std::string> shown(const std::string& text) {
  static constexpr const char* kKinds[] = {"equals", "broadcasts with", "fills", "at most", "multiple of"};
  std::vector<std::string> all;
  for (const SizeCondition& each : conditions_of(text))
    all.push_back(fmt::format("{} {} {}", each.a, kKinds[static_cast<int>(each.kind)], each.b));
  return all;
}

using Shown = std::vector<std::string>;

TEST(SizeConditions, AreNoneWhereSizesSurelyGoTogether) {
  EXPECT_EQ(
      shown("graph(%x: f32[n,8], %w: f32[8,4], %b: f32[4]) { %0 = matmul(%x, %w)\n %1 = add(%0, %b)\n %2 = "
            "softmax(%1)\n return %2 }"),
      Shown());
  EXPECT_EQ(
      shown("graph(%x: f32[n,m], %y: f32[n,m]) { %0 = add(%x, %y)\n %1 = concat([%0, %x], axis=0)\n return "
            "%1 }"),
      Shown());
}

TEST(SizeConditions, SayWhatInferAssumes) {
  EXPECT_EQ(shown("graph(%x: f32[n,4], %y: f32[m,3]) { %0 = matmul(%x, %y)\n return %0 }"),
            Shown{"4 equals m"});
  EXPECT_EQ(shown("graph(%x: f32[n,4], %y: f32[m,4]) { %0 = concat([%x, %y], axis=1)\n return %0 }"),
            Shown{"m equals n"});
  EXPECT_EQ(shown("graph(%x: f32[n], %y: f32[7]) { %0 = add(%x, %y)\n return %0 }"),
            Shown{"n broadcasts with 7"});
  EXPECT_EQ(shown("graph(%x: f32[1,3,h,9], %w: f32[4,3,5,5]) { %0 = conv(%x, %w)\n return %0 }"),
            (Shown{"h at most 281474976710656", "5 at most h"}));
}

TEST(SizeConditions, AreChecked) {
  SizeConditions checks({{Kind::Equal, Dim::symbol("n"), 4, "node \"a\": matmul"},
                         {Kind::Multiple, Dim::symbol("m") * 2, Dim::symbol("k"), "node \"b\": reshape"},
                         {Kind::AtMost, 3, Dim::symbol("h"), "node \"c\": conv"},
                         {Kind::Broadcast, Dim::symbol("p"), 7, "node \"d\": add"},
                         {Kind::Fill, Dim::symbol("q"), 7, "node \"e\": attention"}});
  checks.check({{"n", 4}, {"m", 6}, {"k", 3}, {"h", 3}, {"p", 1}, {"q", 7}});
  checks.check({{"m", 6}});  // what is not bound is left out
  checks.check({{"m", 6}, {"k", 0}});
  const auto refused = [&](const Bindings& sizes, const char* message) {
    expect_error<UserError>([&] { checks.check(sizes); }, message);
  };
  refused({{"n", 5}}, "node \"a\": matmul: the sizes n = 5 and 4 must be equal");
  refused({{"m", 1}, {"k", 4}}, "node \"b\": reshape: the size 2*m = 2 must be a multiple of k = 4");
  refused({{"h", 2}}, "node \"c\": conv: the size 3 must not be more than h = 2");
  refused({{"p", 2}}, "node \"d\": add: the sizes p = 2 and 7 must be equal, or one of them 1");
  refused({{"q", 2}}, "node \"e\": attention: the size q = 2 must be 7, or 1");
}

}  // namespace
}  // namespace tenon
