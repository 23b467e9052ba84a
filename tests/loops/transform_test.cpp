#include "loops/transform.h"

#include "base/error.h"
#include "loops/after.h"

namespace tenon::loops {
namespace {

constexpr std::string_view kMatvec = R"(kernel matvec(a: f32[100,100], b: f32[100]) -> (c: f32[100]) {
  for i in 0..100 {
    c[i] = 0
    for j in 0..100 {
      c[i] += a[i,j] * b[j]
    }
  }
}
)";

// A step of time needs its neighbours in the step before.
constexpr std::string_view kStencil = R"(kernel stencil(x: f32[12]) -> (a: f32[8,12]) {
  for k in 0..12 {
    a[0,k] = x[k]
  }
  for t in 1..8 {
    a[t,0] = x[0]
    a[t,11] = x[11]
  }
  for s in 1..8 {
    for i in 1..11 {
      a[s,i] = (a[s-1,i-1] + a[s-1,i] + a[s-1,i+1]) / 3
    }
  }
}
)";

// The text from some words on; all of it where they do not occur.
std::string rest_of(const std::string& text, std::string_view words) {
  const size_t begin = text.find(words);
  return begin == std::string::npos ? text : text.substr(begin);
}

TEST(Split, MakesTwoLoopsOfOne) {
  EXPECT_EQ(after("kernel k(x: f32[12]) -> (y: f32[12]) { for i in 0..12 { y[i] = x[i] } }", "split(i,4)"),
            R"(kernel k(x: f32[12]) -> (y: f32[12]) {
  for i_o in 0..12 step 4 {
    for i in i_o..i_o+4 {
      y[i] = x[i]
    }
  }
}
)");
}

TEST(Split, EndsWhereTheLoopDid) {
  EXPECT_EQ(after("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n step 2 { y[i] = x[i] }"
                  "  for j in 1..n step 2 { y[j] = 0 } }",
                  "split(i,4)"),
            R"(kernel k(x: f32[n]) -> (y: f32[n]) {
  for i_o in 0..n step 8 {
    for i in i_o..min(i_o+8,n) step 2 {
      y[i] = x[i]
    }
  }
  for j in 1..n step 2 {
    y[j] = 0
  }
}
)");
}

TEST(Tile, PartitionsAMatrixVectorProduct) {
  EXPECT_EQ(after(kMatvec, "tile(i,j,2,2)"), R"(kernel matvec(a: f32[100,100], b: f32[100]) -> (c: f32[100]) {
  for i2 in 0..100 {
    c[i2] = 0
  }
  for i_o in 0..100 step 2 {
    for j_o in 0..100 step 2 {
      for i in i_o..i_o+2 {
        for j in j_o..j_o+2 {
          c[i] += a[i,j] * b[j]
        }
      }
    }
  }
}
)");
}

TEST(Tile, KeepsTheLastTileWithinBounds) {
  EXPECT_EQ(after(kMatvec, "fission(i); tile(i2,j,7,40)"),
            R"(kernel matvec(a: f32[100,100], b: f32[100]) -> (c: f32[100]) {
  for i in 0..100 {
    c[i] = 0
  }
  for i2_o in 0..100 step 7 {
    for j_o in 0..100 step 40 {
      for i2 in i2_o..min(i2_o+7,100) {
        for j in j_o..min(j_o+40,100) {
          c[i2] += a[i2,j] * b[j]
        }
      }
    }
  }
}
)");
}

TEST(Unroll, TakesFiveIterationsAtOnce) {
  EXPECT_EQ(
      after("kernel k(x: f32[100]) -> (y: f32[100]) { for i in 0..100 { y[i] = x[i] * 2 } }", "unroll(i,5)"),
      R"(kernel k(x: f32[100]) -> (y: f32[100]) {
  for i in 0..100 step 5 {
    y[i] = x[i] * 2
    y[i+1] = x[i+1] * 2
    y[i+2] = x[i+2] * 2
    y[i+3] = x[i+3] * 2
    y[i+4] = x[i+4] * 2
  }
}
)");
}

TEST(Unroll, LeavesALoopForTheRest) {
  EXPECT_EQ(after("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i] } }", "unroll(i,2)"),
            R"(kernel k(x: f32[n]) -> (y: f32[n]) {
  for i in 0..2*floor(n/2) step 2 {
    y[i] = x[i]
    y[i+1] = x[i+1]
  }
  for i2 in 2*floor(n/2)..n {
    y[i2] = x[i2]
  }
}
)");
}

constexpr std::string_view kMatmul = R"(kernel matmul(a: f32[n,m], b: f32[m,l]) -> (c: f32[n,l]) {
  for p in 0..n {
    for q in 0..l {
      c[p,q] = 0
    }
  }
  for i in 0..n {
    for j in 0..l {
      for k in 0..m {
        c[i,j] += a[i,k] * b[k,j]
      }
    }
  }
}
)";

TEST(Tile, TilesTheTilesOfAMatrixProduct) {
  EXPECT_EQ(rest_of(after(kMatmul, "tile(i,j,k,4,4,4); tile(i,j,k,2,2,3)"), "  for i"),
            R"(  for i_o in 0..n step 4 {
    for j_o in 0..l step 4 {
      for k_o in 0..m step 4 {
        for i_o2 in i_o..min(i_o+4,n) step 2 {
          for j_o2 in j_o..min(j_o+4,l) step 2 {
            for k_o2 in k_o..min(k_o+4,m) step 3 {
              for i in i_o2..min(i_o+4,i_o2+2,n) {
                for j in j_o2..min(j_o+4,j_o2+2,l) {
                  for k in k_o2..min(k_o+4,k_o2+3,m) {
                    c[i,j] += a[i,k] * b[k,j]
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Tile, TilesTheLoopsOverTiles) {
  EXPECT_EQ(rest_of(after(kMatmul, "tile(i,j,k,2,2,2); tile(k_o,i_o,2,3)"), "  for i"),
            R"(  for i_o_o in 0..n step 6 {
    for k_o_o in 0..m step 4 {
      for i_o in i_o_o..min(i_o_o+6,n) step 2 {
        for j_o in 0..l step 2 {
          for k_o in k_o_o..min(k_o_o+4,m) step 2 {
            for i in i_o..min(i_o+2,n) {
              for j in j_o..min(j_o+2,l) {
                for k in k_o..min(k_o+2,m) {
                  c[i,j] += a[i,k] * b[k,j]
                }
              }
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Tile, LeavesLoopsBetweenThoseNamedWithin) {
  EXPECT_EQ(rest_of(after(kMatmul, "tile(i,k,2,3)"), "  for i"), R"(  for i_o in 0..n step 2 {
    for k_o in 0..m step 3 {
      for i in i_o..min(i_o+2,n) {
        for j in 0..l {
          for k in k_o..min(k_o+3,m) {
            c[i,j] += a[i,k] * b[k,j]
          }
        }
      }
    }
  }
}
)");
}

TEST(Tile, TilesASkewedStencilTwice) {
  EXPECT_EQ(rest_of(after(kStencil, "skew(s,i,1); tile(s,i,4,6); tile(s,i,2,3)"), "  for s_o"),
            R"(  for s_o in 1..8 step 4 {
    for i_o in 2..18 step 6 {
      for s_o2 in s_o..min(s_o+4,8) step 2 {
        for i_o2 in max(i_o,s_o+1)..min(i_o+6,min(s_o+4,8)+10) step 3 {
          for s in s_o2..min(s_o+4,s_o2+2,8) {
            for i in max(i_o,i_o2,s+1)..min(i_o+6,i_o2+3,s+11) {
              a[s,i-s] = (a[s-1,i-s-1] + a[s-1,i-s] + a[s-1,i-s+1]) / 3
            }
          }
        }
      }
    }
  }
}
)");
}

TEST(Split, SplitsItsHalvesAgain) {
  EXPECT_EQ(after("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i] } }",
                  "split(i,6); split(i,3); split(i_o,2)"),
            R"(kernel k(x: f32[n]) -> (y: f32[n]) {
  for i_o_o in 0..n step 12 {
    for i_o in i_o_o..min(i_o_o+12,n) step 6 {
      for i_o2 in i_o..min(i_o+6,n) step 3 {
        for i in i_o2..min(i_o+6,i_o2+3,n) {
          y[i] = x[i]
        }
      }
    }
  }
}
)");
}

TEST(Split, IsDeclinedWhereNumbersOrBoundsGrowBeyondReason) {
  constexpr std::string_view kCopy = "kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i] } }";
  EXPECT_EQ(after(kCopy, "split(i,2000000000); split(i_o,2)"),
            "declined: loop i_o would have a step above 2147483648");
  std::string size = "n";
  for (int i = 0; i < 61; ++i)
    size += fmt::format("+n{}", i);
  EXPECT_EQ(after(fmt::format(
                      "kernel k(x: f32[{0}]) -> (y: f32[{0}]) {{ for i in 0..{0} {{ y[i] = x[i] }} }}", size),
                  "split(i,3)"),
            "declined: bounds or indices would become too long");
}

// Every copy writes to elements of its own.
TEST(Unroll, LeavesManyStatementsThatCanStillBeRearranged) {
  constexpr std::string_view kSweep = R"(kernel sweep(x: f32[4,64]) -> (y: f32[5,64]) {
  for k in 0..64 {
    y[0,k] = 1
  }
  for i in 0..4 {
    for j in 0..64 {
      y[i+1,j] = y[i,j] + x[i,j]
    }
  }
}
)";
  EXPECT_EQ(
      after(kSweep, "unroll(j,32); permute(j,i)").find("  for j in 0..64 step 32 {\n    for i in 0..4 {"),
      after(kSweep, "unroll(j,32)").find("  for i in 0..4 {"));
  EXPECT_EQ(
      after(kSweep, "unroll(j,32); parallelise(i)"),
      "declined: `y[i+1,j] = y[i,j] + x[i,j]` at i = 1, j = 0 must come after `y[i+1,j] = y[i,j] + x[i,j]` "
      "at i = 0, j = 0, but would run at the same time, in another iteration of i");
}

TEST(Unroll, IsDeclinedForTooManyCopies) {
  constexpr std::string_view kCopy =
      "kernel k(x: f32[9999]) -> (y: f32[9999]) { for i in 0..9999 { y[i] = x[i] } }";
  EXPECT_EQ(after(kCopy, "unroll(i)"),
            "declined: loop i would be written out 9999 times, and 1024 is the most");
}

TEST(Parallelise, TakesRangesThatMultiplySizes) {
  EXPECT_EQ(rest_of(after("kernel k(x: f32[n,m]) -> (y: f32[n*m]) { for i in 0..n*m { y[i] = x[0,0] } }",
                          "split(i,8); parallelise(i_o)"),
                    "  for"),
            R"(  for i_o in 0..m*n step 8 parallel {
    for i in i_o..min(m*n,i_o+8) {
      y[i] = x[0,0]
    }
  }
}
)");
  EXPECT_EQ(
      after("kernel k(x: f32[n,m]) -> (y: f32[n*m]) { for i in 0..n*m { y[i] = x[0,0] }"
            "  for j in 1..n*m { y[j] = y[j-1] + 1 } }",
            "parallelise(j)"),
      "declined: `y[j] = y[j-1] + 1` at j = 2 must come after `y[j] = y[j-1] + 1` at j = 1, but would run at "
      "the same time, in another iteration of j, where m*n = 3");
}

TEST(Permute, SaysThatADependenceMayBeWhereItCannotBeTold) {
  EXPECT_EQ(
      after("kernel k(x: f32[n,m]) -> (y: f32[n*m]) {"
            "  for i in 0..n { for j in 0..m { y[i*m+j] = x[i,j] } } }",
            "permute(j,i)"),
      "declined: `y[i*m+j] = x[i,j]` at i = 1, j = 0 may have to come after `y[i*m+j] = x[i,j]` at i = 0, "
      "j = 1, but would run before it, where m = 2, n = 2: which elements of y they use is not known");
  EXPECT_EQ(
      after("kernel k(x: f32[4], at: i64[4]) -> (y: f32[4]) { for i in 0..4 { y[{at[i]}] = x[i] } }",
            "parallelise(i)"),
      "declined: `y[{at[i]}] = x[i]` at i = 1 may have to come after `y[{at[i]}] = x[i]` at i = 0, but would "
      "run at the same time, in another iteration of i: which elements of y they use is not known");
}

TEST(Tile, IsDeclinedWhereDecidingTakesTooLong) {
  EXPECT_EQ(after("kernel k(x: f32[n]) -> (y: f32[n,n]) { for i in 0..n { for j in 0..n { for k in 0..n { for"
                  " l in 0..n { for p in 0..n { for q in 0..n {  y[mod(7948*i+4288*j+605*k+9*l+2387*p+9610*q,"
                  "827),floor((5234*i+360*j+4469*k+8011*l+3247*p+6785*q)/4909)] = y[floor((3163*i+9233*j+9072"
                  "*k+4352*l+9997*p+1445*q)/3979),floor((5935*i+6718*j+4105*k+7296*l+1538*p+3232*q)/2885)] + "
                  "1 } } } } } } }",
                  "tile(i,j,k,l,p,q,3,3,3,3,3,3)"),
            "declined: whether that is legal cannot be decided: it would take too long");
}

TEST(Permute, ChangesTheLayoutThatIsWalked) {
  EXPECT_EQ(
      after("kernel k(x: f32[4,6]) -> (y: f32[6,4]) { for i in 0..4 { for j in 0..6 { y[j,i] = x[i,j] } } }",
            "permute(j,i)"),
      R"(kernel k(x: f32[4,6]) -> (y: f32[6,4]) {
  for j in 0..6 {
    for i in 0..4 {
      y[j,i] = x[i,j]
    }
  }
}
)");
}

TEST(Permute, IsDeclinedWhereADependenceTurnsRound) {
  EXPECT_EQ(after("kernel k(x: f32[4,6]) -> (y: f32[5,7]) {"
                  "  for p in 0..5 { for q in 0..7 { y[p,q] = 0 } }"
                  "  for i in 0..4 { for j in 0..6 { y[i+1,j] = y[i,j+1] + x[i,j] } } }",
                  "permute(j,i)"),
            "declined: `y[i+1,j] = y[i,j+1] + x[i,j]` at i = 1, j = 0 must come after `y[i+1,j] = y[i,j+1] + "
            "x[i,j]` at "
            "i = 0, j = 1, but would run before it");
}

TEST(Permute, ChangesBoundsThatDependOnEachOther) {
  constexpr std::string_view kZeros =
      "kernel k(x: f32[8,16]) -> (y: f32[8,16]) {{ for p in 0..8 {{ for q in 0..16 {{ y[p,q] = 0 }} }}"
      "  for i in 0..8 {{ for j in {} {{ y[i,j] = x[i,j] }} }} }}";
  EXPECT_EQ(rest_of(after(fmt::format(kZeros, "0..i"), "permute(j,i)"), "  for j"), R"(  for j in 0..7 {
    for i in j+1..8 {
      y[i,j] = x[i,j]
    }
  }
}
)");
  EXPECT_EQ(rest_of(after(fmt::format(kZeros, "i..min(2*i+1,12)"), "permute(j,i)"), "  for j"),
            R"(  for j in 0..12 {
    for i in floor((j+1)/2)..min(j+1,8) {
      y[i,j] = x[i,j]
    }
  }
}
)");
  EXPECT_EQ(rest_of(after(fmt::format(kZeros, "max(8-i,0)..16"), "permute(j,i)"), "  for j"),
            R"(  for j in 1..16 {
    for i in max(8-j,0)..8 {
      y[i,j] = x[i,j]
    }
  }
}
)");
}

TEST(Permute, IsDeclinedWhereNoBoundsSayTheSame) {
  constexpr std::string_view kSteps =
      "kernel k(x: f32[4,8]) -> (y: f32[4,8]) {{ for p in 0..4 {{ for q in 0..8 {{ y[p,q] = 0 }} }}"
      "  for i in 0..4 {{ for j in {} {{ y[i,j] = x[i,j] }} }} }}";
  for (const std::string_view range : {"i..8 step 2", "mod(i,2)..8", "floor(i/2)..8"})
    EXPECT_EQ(after(fmt::format(kSteps, range), "permute(j,i)"),
              "declined: the bounds of j depend on i, which would stand within it");
}

TEST(Fuse, MakesOneLoopOfTwo) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8], z: f32[8]) {"
                  "  for i in 0..8 { y[i] = x[i] + 1 } for j in 0..8 { z[j] = y[j] * 2 } }",
                  "fuse(i,j)"),
            R"(kernel k(x: f32[8]) -> (y: f32[8], z: f32[8]) {
  for i in 0..8 {
    y[i] = x[i] + 1
    z[i] = y[i] * 2
  }
}
)");
}

TEST(Fuse, IsDeclinedWhereTheSecondNeedsWhatComesLater) {
  EXPECT_EQ(
      after("kernel k(x: f32[9]) -> (y: f32[9], z: f32[8]) {"
            "  y[8] = 0 for i in 0..8 { y[i] = x[i] + 1 } for j in 0..8 { z[j] = y[j+1] * 2 } }",
            "fuse(i,j)"),
      "declined: `z[j] = y[j+1] * 2` at j = 0 must come after `y[i] = x[i] + 1` at i = 1, but would run "
      "before it");
}

// What a copy reads is known: all of the box, and nothing beside it.
TEST(Fuse, KnowsWhatACopyUses) {
  const auto fused = [](int from, int size) {
    return after(
        fmt::format("kernel k(x: f32[16]) -> (y: f32[18], z: f32[4]) {{"
                    "  y[16] = 0 y[17] = 0 for a in 0..4 {{ for i in 0..4 {{ y[4*a+i] = x[4*a+i] }} }}"
                    "  for b in 0..4 {{ local t: f32[4] in shared copy({1}) t[0] = y[4*b+{0}]"
                    "    z[b] = t[{1}-1] }} }}",
                    from, size),
        "fuse(a,b)");
  };
  EXPECT_TRUE(fused(0, 4).starts_with("kernel k(")) << fused(0, 4);
  EXPECT_TRUE(fused(2, 2).starts_with("kernel k(")) << fused(2, 2);
  EXPECT_EQ(
      fused(1, 4),
      "declined: `copy(4) t[0] = y[4*b+1]` at b = 0 must come after `y[4*a+i] = x[4*a+i]` at a = 1, i = 0, "
      "but would run before it");
}

TEST(Fission, GivesEachStatementALoop) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8], z: f32[8]) {"
                  "  for i in 0..8 { y[i] = x[i] + 1 z[i] = y[i] * 2 } }",
                  "fission(i)"),
            R"(kernel k(x: f32[8]) -> (y: f32[8], z: f32[8]) {
  for i in 0..8 {
    y[i] = x[i] + 1
  }
  for i2 in 0..8 {
    z[i2] = y[i2] * 2
  }
}
)");
}

TEST(Fuse, KeepsLocalBuffersOfOneNameApart) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8], z: f32[8]) {"
                  "  for i in 0..8 { local t: f32[] t[] = x[i] y[i] = t[] }"
                  "  for j in 0..8 { local t: f32[] t[] = x[j] + 1 z[j] = t[] } }",
                  "fuse(i,j)"),
            R"(kernel k(x: f32[8]) -> (y: f32[8], z: f32[8]) {
  for i in 0..8 {
    local t: f32[]
    t[] = x[i]
    y[i] = t[]
    local t2: f32[]
    t2[] = x[i] + 1
    z[i] = t2[]
  }
}
)");
}

TEST(Unroll, KeepsLocalBuffersOfOneNameApart) {
  EXPECT_EQ(after("kernel k(x: f32[2]) -> (y: f32[2], z: f32[]) {"
                  "  for i in 0..2 { local t: f32[] t[] = x[i] y[i] = t[] }"
                  "  local t: f32[] t[] = x[0] z[] = t[] }",
                  "unroll(i)"),
            R"(kernel k(x: f32[2]) -> (y: f32[2], z: f32[]) {
  local t: f32[]
  t[] = x[0]
  y[0] = t[]
  local t2: f32[]
  t2[] = x[1]
  y[1] = t2[]
  local t3: f32[]
  t3[] = x[0]
  z[] = t3[]
}
)");
}

TEST(Unroll, RenamesLoopsBesideEachOther) {
  EXPECT_EQ(after("kernel k(x: f32[2]) -> (y: f32[2,4]) {"
                  "  for i in 0..2 { for j in 0..2 { y[i,j] = x[i] } for j in 2..4 { y[i,j] = x[j-2] } } }",
                  "unroll(i)"),
            R"(kernel k(x: f32[2]) -> (y: f32[2,4]) {
  for j in 0..2 {
    y[0,j] = x[0]
  }
  for j in 2..4 {
    y[0,j] = x[j-2]
  }
  for j2 in 0..2 {
    y[1,j2] = x[1]
  }
  for j3 in 2..4 {
    y[1,j3] = x[j3-2]
  }
}
)");
}

TEST(Divide, KeepsLocalBuffersOfOneNameApart) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8]) { for i in 0..8 {"
                  "  if 7-i >= 0 { local t: f32[] t[] = x[i] y[i] = t[] }"
                  "  if i >= 0 { local t: f32[] t[] = x[i] y[i] += t[] } } }",
                  "divide(i,0)"),
            R"(kernel k(x: f32[8]) -> (y: f32[8]) {
  for i2 in 0..8 {
    local t2: f32[]
    t2[] = x[i2]
    y[i2] = t2[]
    local t3: f32[]
    t3[] = x[i2]
    y[i2] += t3[]
  }
}
)");
}

TEST(Fission, GivesThreeStatementsThreeLoops) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8], z: f32[8], w: f32[8]) {"
                  "  for i in 0..8 { y[i] = x[i] z[i] = y[i] w[i] = z[i] } }",
                  "fission(i)"),
            R"(kernel k(x: f32[8]) -> (y: f32[8], z: f32[8], w: f32[8]) {
  for i in 0..8 {
    y[i] = x[i]
  }
  for i2 in 0..8 {
    z[i2] = y[i2]
  }
  for i3 in 0..8 {
    w[i3] = z[i3]
  }
}
)");
}

TEST(Fission, IsDeclinedWhereAStatementNeedsTheIterationBefore) {
  EXPECT_EQ(
      after("kernel k(x: f32[8]) -> (y: f32[9], z: f32[9]) {"
            "  y[0] = 0 z[0] = 0"
            "  for i in 1..9 { y[i] = z[i-1] + 1 z[i] = y[i] * 2 } }",
            "fission(i)"),
      "declined: `y[i] = z[i-1] + 1` at i = 2 must come after `z[i] = y[i] * 2` at i = 1, but would run "
      "before it");
}

TEST(Skew, LetsAStencilBeTiledAndRunInParallel) {
  // As it is, neither.
  EXPECT_EQ(after(kStencil, "parallelise(s)"),
            "declined: `a[s,i] = (a[s-1,i-1] + a[s-1,i] + a[s-1,i+1]) / 3` at s = 2, i = 2 must come after "
            "`a[s,i] = (a[s-1,i-1] + a[s-1,i] + a[s-1,i+1]) / 3` at s = 1, i = 1, but would run at the same "
            "time, in another iteration of s");
  EXPECT_EQ(after(kStencil, "tile(s,i,4,4)"),
            "declined: `a[s,i] = (a[s-1,i-1] + a[s-1,i] + a[s-1,i+1]) / 3` at s = 2, i = 4 must come after "
            "`a[s,i] = (a[s-1,i-1] + a[s-1,i] + a[s-1,i+1]) / 3` at s = 1, i = 5, but would run before it");
  EXPECT_EQ(after(kStencil, "skew(s,i,1); tile(s,i,4,4)"), R"(kernel stencil(x: f32[12]) -> (a: f32[8,12]) {
  for k in 0..12 {
    a[0,k] = x[k]
  }
  for t in 1..8 {
    a[t,0] = x[0]
    a[t,11] = x[11]
  }
  for s_o in 1..8 step 4 {
    for i_o in 2..18 step 4 {
      for s in s_o..min(s_o+4,8) {
        for i in max(i_o,s+1)..min(i_o+4,s+11) {
          a[s,i-s] = (a[s-1,i-s-1] + a[s-1,i-s] + a[s-1,i-s+1]) / 3
        }
      }
    }
  }
}
)");
}

TEST(Skew, IsDeclinedWhereALoopWithinMightBeginBelow0) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8,8]) {"
                  "  for p in 0..8 { for q in 0..8 { y[p,q] = 0 } }"
                  "  for i in 0..8 { for j in 0..8 { for k in j..8 { y[i,k] += x[j] } } } }",
                  "skew(i,j,1)"),
            "declined: loop k would begin at j-i, which may be negative");
}

TEST(Skew, LetsAWaveRunInParallel) {
  EXPECT_EQ(rest_of(after(kStencil, "skew(s,i,2); permute(i,s); parallelise(s)"), "  for i"),
            R"(  for i in 3..25 {
    for s in max(floor((i+1)/2)-5,1)..min(floor((i+1)/2),8) parallel {
      a[s,i-2*s] = (a[s-1,i-2*s-1] + a[s-1,i-2*s] + a[s-1,i-2*s+1]) / 3
    }
  }
}
)");
  EXPECT_EQ(
      after(kStencil, "skew(s,i,1); permute(i,s); parallelise(s)"),
      "declined: `a[s,i-s] = (a[s-1,i-s-1] + a[s-1,i-s] + a[s-1,i-s+1]) / 3` at i = 3, s = 2 must come after "
      "`a[s,i-s] = (a[s-1,i-s-1] + a[s-1,i-s] + a[s-1,i-s+1]) / 3` at i = 3, s = 1, but would run at the "
      "same "
      "time, in another iteration of s");
  // Tiles of one element along the skewed loop leave, within each, steps of time that need nothing of each
  // other.
  EXPECT_EQ(after(kStencil, "skew(s,i,2); tile(s,i,7,1); parallelise(s)").substr(0, 6), "kernel");
  EXPECT_EQ(after(kStencil, "skew(s,i,1); tile(s,i,7,1); parallelise(s)"),
            "declined: `a[s,i-s] = (a[s-1,i-s-1] + a[s-1,i-s] + a[s-1,i-s+1]) / 3` at s_o = 1, i_o = 3, s = "
            "2, i = 3 must come after `a[s,i-s] = (a[s-1,i-s-1] + a[s-1,i-s] + a[s-1,i-s+1]) / 3` at s_o = "
            "1, i_o = 3, s = 1, i = 3, but would run at the same time, in another iteration of s");
}

TEST(Parallelise, IsDeclinedWhereIterationsConflict) {
  EXPECT_EQ(after(kMatvec, "parallelise(i)").substr(0, 6), "kernel");
  EXPECT_EQ(after(kMatvec, "parallelise(j)"),
            "declined: `c[i] += a[i,j] * b[j]` at i = 0, j = 1 must come after `c[i] += a[i,j] * b[j]` at i "
            "= 0, j = 0, "
            "but would run at the same time, in another iteration of j");
  // Sums of several iterations are added up after all.
  EXPECT_EQ(after(kMatvec, "vectorise(j)").substr(0, 6), "kernel");
}

TEST(Parallelise, TakesABufferOfEachIteration) {
  EXPECT_EQ(
      after("kernel k(x: f32[4]) -> (y: f32[4]) { for i in 0..4 { local t: f32[] t[] = x[i] y[i] = t[] } }",
            "parallelise(i)")
          .substr(0, 6),
      "kernel");
  EXPECT_EQ(
      after("kernel k(x: f32[4]) -> (y: f32[4]) { local t: f32[] for i in 0..4 { t[] = x[i] y[i] = t[] } }",
            "parallelise(i)"),
      "declined: `t[] = x[i]` at i = 1 must come after `t[] = x[i]` at i = 0, but would run at the same "
      "time, in another iteration of i");
}

constexpr std::string_view kArgmax = R"(kernel argmax(x: f32[4]) -> (m: f32[], k: i64[]) {{
  combine {}larger(a: f32, p: i64, b: f32, q: i64) = select(a < b, b, a), select(a < b, q, p)
  m[], k[] = x[0], 0
  for i in 1..4 {{
    m[], k[] larger= x[i], i
  }}
}}
)";

TEST(Combine, KeepsItsOrderUnlessItIsUnordered) {
  EXPECT_EQ(
      after(fmt::format(kArgmax, ""), "vectorise(i)"),
      "declined: `m[], k[] larger= x[i], i` at i = 2 must come after `m[], k[] larger= x[i], i` at i = 1, "
      "but would run at the same time, in another iteration of i");
  EXPECT_EQ(after(fmt::format(kArgmax, "unordered "), "vectorise(i)").substr(0, 6), "kernel");
  EXPECT_EQ(after(fmt::format(kArgmax, "unordered "), "parallelise(i)"),
            "declined: `m[], k[] larger= x[i], i` at i = 2 must come after `m[], k[] larger= x[i], i` at i = "
            "1, but would run at the same time, in another iteration of i");
}

TEST(Combine, IsFreeOnlyWhereAllPlacesMeet) {
  EXPECT_EQ(
      after("kernel k(x: f32[4]) -> (m: f32[4], k: f32[]) {"
            "  combine unordered c(a: f32, p: f32, b: f32, q: f32) = a + b, p + a * q"
            "  for j in 0..4 { m[j] = 1 } k[] = 0"
            "  for i in 0..4 { m[i], k[] c= x[i], x[i] } }",
            "vectorise(i)"),
      "declined: `m[i], k[] c= x[i], x[i]` at i = 1 must come after `m[i], k[] c= x[i], x[i]` at i = 0, but "
      "would run at the same time, in another iteration of i");
}

TEST(Combine, CalledReadIsNoRead) {
  EXPECT_EQ(
      after("kernel k(x: f32[4]) -> (y: f32[]) { combine read(a: f32, b: f32) = b y[] = 0"
            "  for i in 0..4 { y[] read= x[i] } }",
            "parallelise(i)"),
      "declined: `y[] read= x[i]` at i = 1 must come after `y[] read= x[i]` at i = 0, but would run at the "
      "same time, in another iteration of i");
}

TEST(Divide, RemovesAGuard) {
  EXPECT_EQ(after("kernel k(x: f32[10]) -> (y: f32[10]) { for i in 0..10 {"
                  "  if i-3 >= 0 { y[i] = x[i-3] } if 2-i >= 0 { y[i] = 0 } } }",
                  "divide(i,3)"),
            R"(kernel k(x: f32[10]) -> (y: f32[10]) {
  for i in 0..3 {
    y[i] = 0
  }
  for i2 in 3..10 {
    y[i2] = x[i2-3]
  }
}
)");
}

TEST(Peel, TakesIterationsFromEitherEnd) {
  EXPECT_EQ(
      after("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i] } }", "peel(i,1); peel(i2,-1)"),
      R"(kernel k(x: f32[n]) -> (y: f32[n]) {
  for i in 0..min(n,1) {
    y[i] = x[i]
  }
  for i2 in 1..n-1 {
    y[i2] = x[i2]
  }
  for i3 in max(n-1,1)..n {
    y[i3] = x[i3]
  }
}
)");
}

TEST(Steps, AreRefusedWhereTheyMakeNoSense) {
  const auto error = [](std::string_view steps) {
    try {
      apply_steps(parse_kernel(kMatvec), steps);
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("tile(x,j,2,2)"), "'tile(x,j,2,2)': there is no loop x");
  EXPECT_EQ(error("tile(i,j,2)"), "'tile(i,j,2)': tile takes loops, then as many sizes");
  EXPECT_EQ(error("split(i,0)"), "'split(i,0)': a size of 0 is below 1");
  EXPECT_EQ(error("divide(i,z)"), "'divide(i,z)': z is neither a loop around i nor a size");
  EXPECT_EQ(error("divide(i,j)"), "'divide(i,j)': j is neither a loop around i nor a size");
  EXPECT_EQ(error("divide(j,i)"), "no error");
  EXPECT_EQ(error("unroll(i,many)"), "'unroll(i,many)': many should be an integer");
  EXPECT_EQ(error("fold(i)").substr(0, 52), "'fold' is no transformation; there are split, tile, ");
}

}  // namespace
}  // namespace tenon::loops
