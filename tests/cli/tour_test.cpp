#include <gtest/gtest.h>

#include "cli/shell.h"
#include "cli/tour/steps.h"

namespace tenon::cli {
namespace {

using Tour = CommandLine;

void expect_all(const std::string& text, std::initializer_list<const char*> facts) {
  for (const char* fact : facts)
    EXPECT_NE(text.find(fact), std::string::npos) << fact << " is not in\n" << text;
}

// Not timings, which differ from run to run.
TEST_F(Tour, ShowsWhatEachStepIsAbout) {
  const Outcome tour = shell("tenon tour");
  EXPECT_EQ(tour.status, 0);
  EXPECT_EQ(tour.error, "");
  expect_all(tour.out,
             {"torch.nn.functional.linear", "aten::linear", "MatMul(x, ", "ROOT relu", "nn.bias_add"});
  expect_all(tour.out, {"1. multiply-by-one of a mul node", "\n  7 nodes became 5\n"});
  expect_all(tour.out, {"gelu(%x, approximate=\"tanh\")", "\n  9 nodes became 1\n"});
  expect_all(tour.out, {"\nrelu(linear(x)):\n  3 steps became 1 kernel\n",
                        "\nrelu(matmul(x, weight) + bias):\n  3 steps became 1 kernel\n"});
  expect_all(tour.out,
             {"numbers   gradients   lint parameters\n", "\n  portable fold-into-weights            2 ok ",
              "\n  portable everything ", "\n  median ", "\n  p95 ", "\n  speed-up ",
              "\n  parameters: 19776 became 19392, 384 saved\n"});
  expect_all(tour.out,
             {"\n  bytes moved                32.0 MiB      160.0 MiB\n", "this machine computes at most ",
              "fused, operations per byte", " % of the roofline\n"});
  expect_all(tour.out, {"attention(%q, %k, %v, scale=0.125)",
                        "\n  intermediate memory             0 B       16.0 MiB\n", "would take 8.0 MiB"});
  expect_all(tour.out,
             {"for i_o in 0..n step 32 {", "Both compute the same, also compiled.",
              "parallelise(j) is declined: `c[i] += a[i,j] * b[j]` at i = 0, j = 1 must come after"});
  expect_all(tour.out, {"rule forget-the-scale of pass wrong-on-purpose (bit-exact)", "= reciprocal(%1)\n"});
  EXPECT_EQ(files(), std::set<std::string>{"tenon-report.html"});
  EXPECT_EQ(read_file(folder_ / "tenon-report.html").find("<!DOCTYPE html>"), 0u);
  expect_all(tour.out, {"/tenon-report.html, ", "\nWhere to go from here\n"});
  EXPECT_EQ(tour.out.find('\033'), std::string::npos);
  EXPECT_EQ(tour.out.find("Enter goes on"), std::string::npos);
}

TEST_F(Tour, ShowsOneStep) {
  const Outcome step = shell("tenon tour passes");
  EXPECT_EQ(step.status, 0);
  EXPECT_EQ(step.out.find("\nA wasteful model shrinks, pass by pass\n"), 0);
  EXPECT_EQ(step.out.find("GELU"), std::string::npos);
  expect_refused(
      "tenon tour pases",
      "the tour has no step \"pases\"\n  hint: did you mean passes?\n  there are: " +
          shell("tenon tour --list | cut -c 4- | cut -d ' ' -f 1 | paste -s -d ' ' | tr -d '\\n'").out);
}

TEST_F(Tour, CountsItsSteps) {
  EXPECT_EQ(shell("tenon tour 2").out, shell("tenon tour passes").out);
  const Outcome second = shell("tenon tour --list | sed -n 2p");
  EXPECT_EQ(second.out.find(" 2 passes "), 0U) << second.out;
  for (const std::string number : {"0", "11", "99999999999999999999"})
    expect_refused("tenon tour " + number, "the tour has no step " + number + ": they are 1 to 10");
  EXPECT_EQ(shell("tenon tour -- -1").status, 2);
}

// They are for the top of the checkout. What is declined there is the answer no.
TEST_F(Tour, ItsCommandsRun) {
  std::filesystem::create_directory_symlink(source_tree() / "docs", folder_ / "docs");
  for (const TourStep& step : tour_steps())
    for (const std::string_view command : step.commands) {
      const bool measures = command.find(" bench ") < 8 || command.find(" profile ") < 8;
      const Outcome outcome = shell(std::string(command) + (measures ? " --seconds 0" : ""));
      EXPECT_EQ(outcome.status, command.ends_with("\"parallelise(j)\"") ? 1 : 0) << command << outcome.error;
      EXPECT_NE(outcome.out, "") << command;
      EXPECT_EQ(outcome.error, "") << command;
    }
}

// What the step shows of Tenon's own rules is what its command says.
TEST_F(Tour, ItsCommandBisectsTheSameModel) {
  const std::string said = shell("tenon bisect builtin:mha_causal").out;
  const std::string shown = shell("tenon tour bisect").out;
  EXPECT_NE(shown.find("\nWith Tenon's own rules alone:\n  " + said), std::string::npos) << shown;
}

TEST_F(Tour, GoesOnWhereItCannotWrite) {
  std::filesystem::create_directory(folder_ /
                                    "tenon-report.html");  // as good as a read-only folder, also for root
  const Outcome step = shell("tenon tour report");
  EXPECT_EQ(step.status, 0) << step.error;
  expect_all(step.out,
             {"This folder takes no file, so there is no report today:\n  cannot write tenon-report.html: "});
}

// The nests of the tour are those of the files that its commands name.
TEST_F(Tour, ShowsTheLoopsOfItsCommands) {
  const std::string out = shell("tenon tour loops | sed 's/^  //'").out;
  for (const char* file : {"matmul", "matvec"}) {
    const std::string kernel = read_file(source_tree() / "docs/loops" / (std::string(file) + ".loops"));
    EXPECT_NE(out.find(kernel), std::string::npos) << kernel;
  }
}

TEST_F(Tour, IsColouredAndPausesOnATerminal) {
  const Outcome tour = shell("echo q | TERM=xterm script -qec 'tenon tour' /dev/null");
  EXPECT_EQ(tour.status, 0);
  expect_all(tour.out, {"\033[1;36m1 of ", "Enter goes on, q ends the tour: "});
  EXPECT_EQ(tour.out.find("2 of "), std::string::npos) << tour.out;
  EXPECT_EQ(shell("echo q | NO_COLOR=1 script -qec 'tenon tour passes' /dev/null").out.find('\033'),
            std::string::npos);
}

}  // namespace
}  // namespace tenon::cli
