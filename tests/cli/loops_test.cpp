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
