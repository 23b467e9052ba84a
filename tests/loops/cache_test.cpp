#include "base/error.h"
#include "loops/after.h"
#include "loops/transform.h"

namespace tenon::loops {
namespace {

TEST(Cache, CopiesWhatATileReads) {
  EXPECT_EQ(after("kernel k(a: f32[8,8], b: f32[8,8]) -> (c: f32[8,8]) {"
                  "  for i in 0..8 { for j in 0..8 { c[i,j] = 0 } }"
                  "  for p in 0..8 { for q in 0..8 { for k in 0..8 { c[p,q] += a[p,k] * b[k,q] } } } }",
                  "tile(q,k,4,2); cache(b,k_o)"),
            R"(kernel k(a: f32[8,8], b: f32[8,8]) -> (c: f32[8,8]) {
  for i in 0..8 {
    for j in 0..8 {
      c[i,j] = 0
    }
  }
  for p in 0..8 {
    for q_o in 0..8 step 4 {
      for k_o in 0..8 step 2 {
        local b_c: f32[2,4] in private
        for b_c_0 in 0..2 {
          for b_c_1 in 0..4 {
            b_c[b_c_0,b_c_1] = b[b_c_0+k_o,b_c_1+q_o]
          }
        }
        for q in q_o..q_o+4 {
          for k in k_o..k_o+2 {
            c[p,q] += a[p,k] * b_c[k-k_o,q-q_o]
          }
        }
      }
    }
  }
}
)");
}

TEST(Cache, IsDeclinedForWhatIsWritten) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (c: f32[8]) { for i in 0..8 { c[i] = x[i] } }", "cache(c,i)"),
            "declined: c is written in loop i");
}

TEST(Cache, CopiesNothingThatAStepLeavesOut) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[4]) { for i in 0..4 { y[i] = 0"
                  "  for j in 1..9 step 3 { y[i] += x[j] } } }",
                  "cache(x,i)"),
            R"(kernel k(x: f32[8]) -> (y: f32[4]) {
  for i in 0..4 {
    local x_c: f32[7] in private
    for x_c_0 in 0..7 {
      x_c[x_c_0] = x[x_c_0+1]
    }
    y[i] = 0
    for j in 1..9 step 3 {
      y[i] += x_c[j-1]
    }
  }
}
)");
}

TEST(Cache, CopiesNothingOutsideOfTheBuffer) {
  constexpr std::string_view kDeclined = "declined: elements of x would be copied that loop i may not read";
  // Under a select, or a condition.
  EXPECT_EQ(after("kernel k(x: f32[4]) -> (y: f32[5]) {"
                  "  for i in 0..5 { y[i] = select(f32(i) < 1, 0, x[i-1]) } }",
                  "cache(x,i)"),
            kDeclined);
  EXPECT_EQ(after("kernel k(x: f32[4]) -> (y: f32[5]) {"
                  "  for i in 0..5 { y[i] = 0 if i-1 >= 0 { y[i] = x[i-1] } } }",
                  "cache(x,i)"),
            kDeclined);
}

TEST(Cache, CopiesNothingForALoopThatIsEmpty) {
  EXPECT_EQ(after("kernel k(x: f32[3]) -> (y: f32[4]) {"
                  "  for i in 0..4 { y[i] = 0 for j in i..3 { y[i] += x[j] } } }",
                  "cache(x,i)"),
            R"(kernel k(x: f32[3]) -> (y: f32[4]) {
  for i in 0..4 {
    local x_c: f32[max(3-i,0)] in private
    for x_c_0 in 0..max(3-i,0) {
      x_c[x_c_0] = x[i+x_c_0]
    }
    y[i] = 0
    for j in i..3 {
      y[i] += x_c[j-i]
    }
  }
}
)");
}

TEST(Cache, CopiesOnlyWhatIsReadOfWhatTheKernelWrites) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[4]) { local t: f32[8]"
                  "  for p in 0..8 step 2 { t[p] = x[p] }"
                  "  for i in 0..4 { y[i] = 0 for j in 0..8 step 2 { y[i] += t[j] } } }",
                  "cache(t,i)"),
            "declined: elements of t would be copied that loop i may not read");
  EXPECT_EQ(after("kernel k(x: f32[4]) -> (y: f32[4]) { local t: f32[4,4]"
                  "  for p in 0..4 { for q in 0..p+1 { t[p,q] = x[q] } }"
                  "  for i in 0..4 { y[i] = 0 for a in 0..4 { for b in 0..a+1 { y[i] += t[a,b] } } } }",
                  "cache(t,i)"),
            "declined: elements of t would be copied that loop i may not read");
}

TEST(Cache, IsDeclinedForWhatIsHandedToARoutineOrDeclaredWithin) {
  EXPECT_EQ(
      after("kernel k(x: f32[4]) -> (y: f32[4]) { for i in 0..4 { y[i] = x[i] call sort(y[0] <- x[0]) } }",
            "cache(x,i)"),
      "declined: x is handed to sort");
  EXPECT_EQ(after("kernel k(x: f32[4]) -> (y: f32[4]) { for i in 0..4 { local t: f32[1] y[i] = t[0] } }",
                  "cache(t,i)"),
            "declined: t is declared in loop i");
}

TEST(Shrink, IsDeclinedForWhatIsHandedToARoutine) {
  EXPECT_EQ(after("kernel k(x: f32[4]) -> (y: f32[4]) { local t: f32[4]"
                  "  for i in 0..4 { call fill(t[i] <- x[0]) y[i] = t[i] } }",
                  "shrink(t)"),
            "declined: t is handed to fill");
}

TEST(Shrink, KeepsOneElementOfALocalBuffer) {
  EXPECT_EQ(after("kernel k(x: f32[4,8]) -> (y: f32[4,8]) { local t: f32[4,8]"
                  "  for i in 0..4 { for j in 0..8 { t[i,j] = x[i,j] + 1 y[i,j] = t[i,j] * 2 } } }",
                  "shrink(t)"),
            R"(kernel k(x: f32[4,8]) -> (y: f32[4,8]) {
  for i in 0..4 {
    for j in 0..8 {
      local t: f32[]
      t[] = x[i,j] + 1
      y[i,j] = t[] * 2
    }
  }
}
)");
}

TEST(Shrink, KeepsWhatALaterIterationReads) {
  EXPECT_EQ(after("kernel k(x: f32[8]) -> (y: f32[8]) { local t: f32[9] t[0] = 0"
                  "  for i in 0..8 { t[i+1] = x[i] y[i] = t[i] } }",
                  "shrink(t)"),
            "declined: no loop has elements of t to itself");
}

}  // namespace
}  // namespace tenon::loops
