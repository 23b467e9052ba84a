// The lecture's examples, from the files that docs/loops.md shows: each with a request that is legal, and one
// that a dependence forbids.
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "loops/after.h"
#include "source_tree.h"

namespace tenon::loops {
namespace {

std::string example(const std::string& name) {
  const auto file = MappedFile::open((source_tree() / "docs/loops" / (name + ".loops")).string());
  return {reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()};
}

// The kernel without its first line, which says what it takes.
std::string body_after(const std::string& name, std::string_view steps) {
  const std::string text = after(example(name), steps);
  return text.substr(text.starts_with("kernel") ? text.find('\n') + 1 : 0);
}

TEST(Lecture, TilesAMatrixVectorProductByTwoAndTwo) {
  EXPECT_EQ(body_after("matvec", "split(i,2); fission(i); unroll(i); split(j,2); permute(j_o,i2)"),
            R"(  for i_o in 0..100 step 2 {
    c[i_o] = 0
    c[i_o+1] = 0
    for j_o in 0..100 step 2 {
      for i2 in i_o..i_o+2 {
        for j in j_o..j_o+2 {
          c[i2] += a[i2,j] * b[j]
        }
      }
    }
  }
}
)");
  EXPECT_EQ(body_after("matvec", "parallelise(j)"),
            "declined: `c[i] += a[i,j] * b[j]` at i = 0, j = 1 must come after `c[i] += a[i,j] * b[j]` at i "
            "= 0, j = 0, "
            "but would run at the same time, in another iteration of j");
}

TEST(Lecture, TilesAMatrixProductTwice) {
  const std::string text =
      body_after("matmul", "tile(i,j,k,4,4,4); tile(i,j,k,2,2,2); unroll(j,2); parallelise(i_o)");
  EXPECT_NE(text.find("for i_o in 0..n step 4 parallel {"), std::string::npos) << text;
  EXPECT_NE(text.find("c[i,j+1] += a[i,k"), std::string::npos) << text;
  EXPECT_EQ(body_after("matmul", "tile(i,j,k,4,4,4); parallelise(k_o)"),
            "declined: `c[i,j] += a[i,k] * b[k,j]` at i_o = 0, j_o = 0, k_o = 4, i = 0, j = 0, k = 4 must "
            "come after "
            "`c[i,j] += a[i,k] * b[k,j]` at i_o = 0, j_o = 0, k_o = 0, i = 0, j = 0, k = 0, but would run at "
            "the same "
            "time, in another iteration of k_o, where l = 1, m = 5, n = 1");
}

TEST(Lecture, UnrollsByFive) {
  EXPECT_EQ(body_after("running", "unroll(x,5)"), R"(  s[0] = 0
  for x in 0..100 step 5 {
    s[x+1] = s[x] + a[x]
    s[x+2] = s[x+1] + a[x+1]
    s[x+3] = s[x+2] + a[x+2]
    s[x+4] = s[x+3] + a[x+3]
    s[x+5] = s[x+4] + a[x+4]
  }
}
)");
  EXPECT_EQ(body_after("running", "vectorise(x)"),
            "declined: `s[x+1] = s[x] + a[x]` at x = 1 must come after `s[x+1] = s[x] + a[x]` at x = 0, but "
            "would run at "
            "the same time, in another iteration of x");
}

TEST(Lecture, PermutesForTheLayout) {
  const std::string text = body_after("layout", "permute(i,j)");
  EXPECT_TRUE(text.starts_with("  for i in 0..n {\n    for j in 0..m {\n      y[j,i] = x[i,j]\n")) << text;
  EXPECT_EQ(body_after("layout", "permute(q,p)"),
            "declined: `z[p+1,q] = z[p,q+1] + x[p,q]` at p = 1, q = 0 must come after `z[p+1,q] = z[p,q+1] + "
            "x[p,q]` at "
            "p = 0, q = 1, but would run before it, where m = 2, n = 2");
}

TEST(Lecture, FusesLoops) {
  EXPECT_EQ(body_after("fusion", "fuse(i,j); shrink(t)"), R"(  for i in 0..n {
    local t: f32[]
    t[] = x[i] + 1
    y[i] = t[] * 2
  }
  for k in 0..n {
    z[k] = y[n-k-1]
  }
}
)");
  EXPECT_EQ(body_after("fusion", "fuse(j,k)"),
            "declined: `z[k] = y[n-k-1]` at k = 0 must come after `y[j] = t[j] * 2` at j = 1, but would run "
            "before it, "
            "where n = 2");
}

TEST(Lecture, TakesLoopsApart) {
  const std::string text = body_after("fission", "fission(i)");
  EXPECT_TRUE(text.starts_with(
      "  for i in 0..n {\n    y[i] = x[i] + 1\n  }\n  for i2 in 0..n {\n    z[i2] = y[i2] * 2\n  }\n"))
      << text;
  EXPECT_EQ(body_after("fission", "fission(j)"),
            "declined: `u[j] = v[j] + x[j]` at j = 1 must come after `v[j+1] = u[j] * 2` at j = 0, but would "
            "run before "
            "it, where n = 2");
}

TEST(Lecture, SkewsAStencilToTileItAndRunItInParallel) {
  constexpr std::string_view kWhy =
      "declined: `a[t,i] = (a[t-1,i-1] + a[t-1,i] + a[t-1,i+1]) / 3` at t = 2, i = {} must come after "
      "`a[t,i] = (a[t-1,i-1] + a[t-1,i] + a[t-1,i+1]) / 3` at t = 1, i = {}, but would run {}";
  EXPECT_EQ(body_after("stencil", "tile(t,i,4,8)"), fmt::format(kWhy, 8, 9, "before it"));
  EXPECT_EQ(body_after("stencil", "parallelise(t)"),
            fmt::format(kWhy, 2, 1, "at the same time, in another iteration of t"));
  EXPECT_TRUE(body_after("stencil", "skew(t,i,1); tile(t,i,4,8); tile(t,i,2,2)").starts_with("  for k"));
  const std::string waves = body_after("stencil", "skew(t,i,2); permute(i,t); parallelise(t)");
  EXPECT_NE(waves.find("    for t in max(floor((i+1)/2)-31,1)..min(floor((i+1)/2),16) parallel {\n"),
            std::string::npos)
      << waves;
}

TEST(Lecture, SplitsTheIndexSetToRemoveAGuard) {
  EXPECT_EQ(body_after("shift", "divide(i,3)"), R"(  for i in 0..min(n,3) {
    y[i] = 0
  }
  for i2 in 3..n {
    y[i2] = x[i2-3]
  }
}
)");
}

TEST(Lecture, SplitsTheIndexSetToRemoveADependence) {
  EXPECT_EQ(body_after("first", "parallelise(j)"),
            "declined: `y[j] = y[0] * x[j]` at j = 1 must come after `y[j] = y[0] * x[j]` at j = 0, but "
            "would run at the "
            "same time, in another iteration of j, where n = 2");
  EXPECT_TRUE(body_after("first", "peel(j,1); parallelise(j2)")
                  .ends_with("  for j2 in 1..n parallel {\n    y[j2] = y[0] * x[j2]\n  }\n}\n"));
}

}  // namespace
}  // namespace tenon::loops
