#include <gtest/gtest.h>

#include <fstream>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class Loops : public CommandLine {
 protected:
  void write(const std::string& text) const { std::ofstream(folder_ / "k.loops") << text; }
};

const std::string kHalves =
    "kernel halves(x: f32[2*n]) -> (y: f32[n]) {\n"
    "  for i in 0..n {\n"
    "    y[i] = x[2*i]\n"
    "  }\n"
    "}\n";

TEST_F(Loops, ComparesWhatWasRearranged) {
  write(kHalves);
  const std::string after =
      "\nafter parallelise(i):\n"
      "kernel halves(x: f32[2*n]) -> (y: f32[n]) {\n"
      "  for i in 0..n parallel {\n"
      "    y[i] = x[2*i]\n"
      "  }\n"
      "}\n\n"
      "Both compute the same, also compiled.\n";
  expect_done("tenon loops k.loops", kHalves);
  expect_done("tenon loops k.loops --apply 'parallelise(i)'", kHalves + after);
  expect_done("tenon loops k.loops --apply 'parallelise(i)' --dim n=3", kHalves + after);
}

TEST_F(Loops, AllowsForRoundingAsTheDTypeDoes) {
  write("kernel sum(x: f16[100]) -> (y: f16[]) { y[] = 0 for i in 0..100 { y[] += x[i] } }");
  const Outcome outcome = shell("tenon loops k.loops --apply 'vectorise(i)'");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("Both compute the same, also compiled, up to rounding: off by "),
            std::string::npos)
      << outcome.out;
}

TEST_F(Loops, ComparesNothingThatCallsARoutine) {
  const std::string text =
      "kernel k(x: f32[4]) -> (y: f32[4]) {\n"
      "  for i in 0..4 {\n"
      "    call sort(y[0] <- x[0])\n"
      "  }\n"
      "}\n";
  write(text);
  expect_done("tenon loops k.loops --apply 'split(i,4)'", text +
                                                              "\nafter split(i,4):\n"
                                                              "kernel k(x: f32[4]) -> (y: f32[4]) {\n"
                                                              "  for i_o in 0..4 step 4 {\n"
                                                              "    for i in i_o..i_o+4 {\n"
                                                              "      call sort(y[0] <- x[0])\n"
                                                              "    }\n"
                                                              "  }\n"
                                                              "}\n\n"
                                                              "Not compared: it calls sort.\n");
}

TEST_F(Loops, DeclinesWithStatus1) {
  const std::string text =
      "kernel k(x: f32[4]) -> (y: f32[]) {\n"
      "  y[] = 0\n"
      "  for i in 0..4 {\n"
      "    y[] += x[i]\n"
      "  }\n"
      "}\n";
  write(text);
  expect(
      "tenon loops k.loops --apply 'parallelise(i)'", 1,
      text +
          "\nparallelise(i) is declined: `y[] += x[i]` at i = 1 must come after `y[] += x[i]` at i = 0, but "
          "would run at the same time, in another iteration of i\n",
      "");
}

TEST_F(Loops, RefusesWhatMakesNoSense) {
  write(kHalves);
  expect_refused("tenon loops k.loops --dim m=3", "--dim m=3: no size of halves is called m");
  expect_refused("tenon loops k.loops --dim n", "--dim n: it should look like batch=4");
  expect_refused("tenon loops k.loops --apply 'split(z,2)'", "'split(z,2)': there is no loop z");
  write("kernel k() -> (y: f32[]) { z[] = 1 }");
  expect_refused("tenon loops k.loops", "k.loops: line 1, column 29: 'z' is no buffer");
}

const std::string kDoubled =
    "kernel doubled(x: f32[n]) -> (y: f32[n]) {\n"
    "  for i in 0..n {\n"
    "    y[i] = x[i] * 2\n"
    "  }\n"
    "}\n";

TEST_F(Loops, TakesSeveralKernels) {
  write(kHalves + "// Another.\n" + kDoubled);
  expect_done("tenon loops k.loops", kHalves + "\n" + kDoubled);
  expect_done("tenon loops k.loops --kernel doubled", kDoubled);
  expect_refused("tenon loops k.loops --kernel none", "k.loops has no kernel none; it has halves, doubled");
  expect_refused("tenon loops k.loops --apply 'split(i,2)'",
                 "k.loops has several kernels: halves, doubled\n  hint: say which with --kernel");
  expect_refused("tenon loops k.loops --dim m=3", "--dim m=3: no size of a kernel is called m");
  const Outcome outcome = shell("tenon loops k.loops --kernel doubled --apply 'split(i,4)'");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_TRUE(outcome.out.ends_with("Both compute the same, also compiled.\n")) << outcome.out;
  write(kHalves + kHalves);
  expect_refused("tenon loops k.loops", "k.loops: there are two kernels called halves");
}

TEST_F(Loops, ShowsThePolyhedralModel) {
  write(kDoubled);
  expect_done("tenon loops k.loops --show --apply 'split(i,4)'", kDoubled + R"(
statements
  S0: y[i] = x[i] * 2
domains
  { S0[i] : 0 <= i < n }
schedule
  { S0[i] -> [0, i, 0] }
dependences
  none

after split(i,4):
kernel doubled(x: f32[n]) -> (y: f32[n]) {
  for i_o in 0..n step 4 {
    for i in i_o..min(i_o+4,n) {
      y[i] = x[i] * 2
    }
  }
}

schedule
  { S0[i] -> [0, i_o, 0, i, 0] : (i_o) mod 4 = 0 and -3 + i <= i_o <= i }

Both compute the same, also compiled.
)");
}

TEST_F(Loops, TimesNests) {
  write(kDoubled);
  const Outcome alone = shell("tenon loops k.loops --time --dim n=1000 --threads 1");
  EXPECT_EQ(alone.status, 0) << alone.error;
  EXPECT_NE(alone.out.find("\n               as written\nmedian"), std::string::npos) << alone.out;
  EXPECT_EQ(alone.out.find("speed-up"), std::string::npos) << alone.out;
  EXPECT_TRUE(alone.out.ends_with("\nwith n = 1000, 1 thread\n")) << alone.out;

  const Outcome both = shell("tenon loops k.loops --time --apply 'vectorise(i)' --dim n=1000 --threads 2");
  EXPECT_EQ(both.status, 0) << both.error;
  EXPECT_NE(both.out.find("Both compute the same, compiled.\n\n                   before        after\n"),
            std::string::npos)
      << both.out;
  EXPECT_NE(both.out.find("\nspeed-up            1.00x "), std::string::npos) << both.out;
  EXPECT_TRUE(both.out.ends_with("\nwith n = 1000, 2 threads\n")) << both.out;
}

TEST_F(Loops, TimesNothingThatReadsOutsideItsBuffers) {
  write("kernel k(x: f32[n]) -> (y: f32[n]) { for i in 0..n { y[i] = x[i+1] } }");
  const Outcome outcome = shell("tenon loops k.loops --time --dim n=9");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error, "tenon: k.loops: x: index 9 along dimension 0 of f32[9], at i = 8, n = 9\n");
  write("kernel k(x: f32[4]) -> (y: f32[4]) { for i in 0..4 { call sort(y[0] <- x[0]) } }");
  const Outcome routine = shell("tenon loops k.loops --time");
  EXPECT_EQ(routine.status, 2);
  EXPECT_EQ(routine.error, "tenon: k.loops: --time: kernel k cannot be compiled for the processor\n");
}

TEST_F(Loops, NamesTheFileAndTheLineOfWhatIsWrong) {
  write(
      "// A comment.\nkernel k(x: f32[4]) -> (y: f32[4]) {\n  for i in 0..4 {\n    y[i] = x[i,0]\n  }\n\n  "
      "y[j] = 0\n}\n");
  expect_refused("tenon loops k.loops",
                 "k.loops: line 4: 'x' has 1 dimensions, but is read with 2 indices\n"
                 "  line 7: 'j' is neither a loop around it nor a size of an input or output");
  write("kernel k(x: f32[4]) -> (y: f32[4]) {\n  for i in 0..4 {\n    y[i] = x[i+1]\n  }\n}\n");
  const Outcome outcome = shell("tenon loops k.loops --apply 'split(i,2)'");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error, "tenon: k.loops: x: index 4 along dimension 0 of f32[4], at i = 3\n");
}

}  // namespace
}  // namespace tenon::cli
