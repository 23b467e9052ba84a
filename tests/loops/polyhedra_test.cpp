#include "loops/polyhedra.h"

#include <gtest/gtest.h>

#include "loops/bounds.h"
#include "loops/order.h"
#include "loops/parse_kernels.h"
#include "loops/transform.h"

namespace tenon::loops {
namespace {

constexpr std::string_view kMatvec = R"(kernel matvec(a: f32[n,m], b: f32[m]) -> (c: f32[n]) {
  for i in 0..n {
    c[i] = 0
    for j in 0..m {
      c[i] += a[i,j] * b[j]
    }
  }
})";

std::string show(std::string_view text) { return show_polyhedra(parse_checked_kernel(text)); }

std::string schedule_after(std::string_view text, std::string_view steps) {
  const Kernel before = stamp(parse_checked_kernel(text));
  const std::vector<Step> done = apply_steps(before, steps);
  EXPECT_TRUE(done.back().result.kernel) << done.back().result.declined;
  return show_schedule(before, *done.back().result.kernel);
}

TEST(Polyhedra, ShowsDomainsScheduleAndDependencesOfAReduction) {
  EXPECT_EQ(show(kMatvec), R"(statements
  S0: c[i] = 0
  S1: c[i] += a[i,j] * b[j]
domains
  { S0[i] : 0 <= i < n }
  { S1[i, j] : 0 <= i < n and 0 <= j < m }
schedule
  { S0[i] -> [0, i, 0, 0, 0] }
  { S1[i, j] -> [0, i, 1, j, 0] }
dependences
  flow through c: { S0[i] -> S1[i, 0] : m > 0 and 0 <= i < n }
  reduction through c: { S1[i, j] -> S1[i, 1 + j] : 0 <= i < n and 0 <= j <= -2 + m }, distance (0, 1)
)");
}

TEST(Polyhedra, ShowsWhatIsOverwritten) {
  EXPECT_EQ(show("kernel k(x: f32[8]) -> (y: f32[8], t: f32[]) {\n"
                 "  for i in 0..8 { t[] = x[i] y[i] = t[] }\n"
                 "}"),
            R"(statements
  S0: t[] = x[i]
  S1: y[i] = t[]
domains
  { S0[i] : 0 <= i <= 7 }
  { S1[i] : 0 <= i <= 7 }
schedule
  { S0[i] -> [0, i, 0] }
  { S1[i] -> [0, i, 1] }
dependences
  output through t: { S0[i] -> S0[1 + i] : 0 <= i <= 6 }, distance (1)
  flow through t: { S0[i] -> S1[i] : 0 <= i <= 7 }
  anti through t: { S1[i] -> S0[1 + i] : 0 <= i <= 6 }
)");
}

TEST(Polyhedra, FindsNoneWhereNoRunNeedsAnother) {
  const std::string text = show("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i] } }");
  EXPECT_TRUE(text.ends_with("dependences\n  none\n")) << text;
}

TEST(Polyhedra, SaysWhichDependencesArePossibleOnly) {
  const std::string text = show(
      "kernel k(x: f32[n], at: i64[n]) -> (y: f32[n]) {\n"
      "  for i in 0..n { y[i] = 0 }\n"
      "  for j in 0..n { y[{at[j]}] = x[j] }\n"
      "}");
  EXPECT_NE(text.find("  output through y: { S0[i] -> S1[j'] : 0 <= i < n and 0 <= j' < n }, perhaps\n"),
            std::string::npos)
      << text;
}

TEST(Polyhedra, SaysWhatCannotBeShown) {
  const std::string text = show(
      "kernel k(x: f32[8]) -> (y: f32[8]) {\n"
      "  for i in 0..8 { for j in 0..i*i { y[i] = x[i] } }\n"
      "}");
  EXPECT_EQ(text,
            "statements\n  S0: y[i] = x[i]\n"
            "  not known: i*i-j-1 is no sum of loop variables and sizes\n");
}

// Of the first kernel, however many steps have been taken.
TEST(Polyhedra, FollowsStatementsThroughSteps) {
  EXPECT_EQ(schedule_after(kMatvec, "tile(i,j,4,8)"), R"(schedule
  { S0[i] -> [0, i, 0, 0, 0, 0, 0, 0, 0] }
  { S1[i, j] -> [1, i_o, 0, j_o, 0, i, 0, j, 0] : (j_o) mod 8 = 0 and (i_o) mod 4 = 0 and -3 + i <= i_o <= i and -7 + j <= j_o <= j }
)");
  EXPECT_EQ(schedule_after(kMatvec, "fission(i); permute(j,i2); permute(i2,j)"), R"(schedule
  { S0[i] -> [0, i, 0, 0, 0] }
  { S1[i, j] -> [1, i, 0, j, 0] }
)");
  EXPECT_EQ(schedule_after("kernel k(x: f32[9]) -> (y: f32[9,9]) {\n"
                           "  for t in 0..9 { for i in 0..9 { y[t,i] = x[i] } }\n"
                           "}",
                           "skew(t,i,1); permute(i,t); skew(i,t,2)"),
            "schedule\n  { S0[t, i] -> [0, t + i, 0, 3t + 2i, 0] }\n");
}

TEST(Polyhedra, ShowsEachCopyOfAStatement) {
  EXPECT_EQ(schedule_after("kernel k(x: f32[10]) -> (y: f32[10]) { for i in 0..10 { y[i] = x[i] } }",
                           "unroll(i,2)"),
            R"(schedule
  { S0[i] -> [0, i, 0] : (i) mod 2 = 0 }
  { S0[i] -> [0, -1 + i, 1] : (1 + i) mod 2 = 0 }
)");
}

TEST(Polyhedra, ListsStatementsThatCameSince) {
  EXPECT_EQ(
      schedule_after("kernel k(x: f32[10]) -> (y: f32[10]) { for i in 0..10 { y[i] = x[i] } }", "cache(x,i)"),
      R"(statements
  S1: x_c[x_c_0] = x[i+x_c_0]
schedule
  { S1[i, x_c_0] -> [0, i, 0, 0, 0] }
  { S0[i] -> [0, i, 1, 0, 0] }
)");
}

TEST(ParseKernels, TakesSeveral) {
  const std::vector<Kernel> kernels = parse_kernels(
      "kernel a(x: f32[4]) -> (y: f32[4]) { y[0] = x[0] }\n// Another.\n"
      "kernel b(t: f32[4]) -> (x: f32[]) { x[] = t[0] }\n");
  ASSERT_EQ(kernels.size(), 2);
  EXPECT_EQ(kernels[0].name, "a");
  EXPECT_EQ(kernels[1].name, "b");
}

TEST(ParseKernels, NamesTheLineInTheWholeText) {
  try {
    parse_kernels(
        "kernel a(x: f32[4]) -> (y: f32[4]) {\n  y[0] = x[0]\n}\n"
        "kernel b(x: f32[4]) -> (y: f32[4]) {\n  y[0] = x[0,0]\n}\n");
    FAIL() << "nothing was wrong";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "line 5: 'x' has 1 dimensions, but is read with 2 indices");
  }
}

TEST(ParseKernels, RefusesTwoOfOneName) {
  try {
    parse_kernels("kernel a() -> (y: f32[]) { y[] = 0 } kernel a() -> (y: f32[]) { y[] = 1 }");
    FAIL() << "nothing was wrong";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "there are two kernels called a");
  }
}

bool stays(std::string_view text, const std::map<std::string, int64_t>& sizes) {
  return stays_in_bounds(parse_checked_kernel(text), sizes);
}

TEST(Bounds, AreKnownFromSizes) {
  EXPECT_TRUE(stays(kMatvec, {{"n", 5}, {"m", 3}}));
  constexpr std::string_view kShifted =
      "kernel k(x: f32[n]) -> (y: f32[9]) { for i in 0..9 { y[i] = x[i+2] } }";
  EXPECT_TRUE(stays(kShifted, {{"n", 11}}));
  EXPECT_FALSE(stays(kShifted, {{"n", 10}}));
  EXPECT_FALSE(stays("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i-1] } }", {{"n", 10}}));
  EXPECT_TRUE(stays("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { if i-1 >= 0 { y[i] = x[i-1] } } }",
                    {{"n", 10}}));
}

TEST(Bounds, OfLocalBuffersCountToo) {
  constexpr std::string_view kText =
      "kernel k(x: f32[n]) -> (y: f32[n]) {\n"
      "  local t: f32[4]\n"
      "  for i in 0..n { t[i] = x[i] y[i] = t[i] }\n"
      "}";
  EXPECT_TRUE(stays(kText, {{"n", 4}}));
  EXPECT_FALSE(stays(kText, {{"n", 5}}));
}

TEST(Bounds, AreNotKnownWhereDataDecides) {
  EXPECT_FALSE(stays("kernel k(x: f32[n], at: i64[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[{at[i]}] } }",
                     {{"n", 4}}));
}

}  // namespace
}  // namespace tenon::loops
