#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

class Profile : public CommandLine {};

TEST_F(Profile, ShowsStepsAndCeilings) {
  const Outcome outcome = shell("tenon profile builtin:mlp_softmax --seconds 0 --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  for (const char* part :
       {"    time  share  GFLOP/s    GB/s ceiling  bound by  step\n", "kernel0 ", " outside the steps\n",
        " the whole run\n", "means of the middle half of 5 runs, with 1 thread\n", " GB/s in memory\n"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << outcome.out;
}

TEST_F(Profile, WritesJsonAndATrace) {
  const Outcome outcome =
      shell("tenon profile builtin:resnet_block --seconds 0 --threads 2 --json out.json --trace trace.json");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  const Json json = Json::parse(read_file(folder_ / "out.json"));
  EXPECT_EQ(json["model"], "builtin:resnet_block");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["runs"], 5);
  EXPECT_GT(json["peak_gflops"], 0);
  EXPECT_GT(json["total"]["milliseconds"], 0);
  EXPECT_GE(json["steps"].size(), 3U);
  const Json trace = Json::parse(read_file(folder_ / "trace.json"));
  EXPECT_GE(trace["traceEvents"].size(), 3 + json["steps"].size());
}

TEST_F(Profile, ListsAsManyStepsAsItIsAskedFor) {
  const Outcome outcome = shell("tenon profile builtin:resnet_block --seconds 0 --top 1");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find(" others\n"), std::string::npos) << outcome.out;
}

// Nested graphs run within one step.
TEST_F(Profile, MeasuresControlFlow) {
  const Outcome outcome =
      shell("tenon profile builtin:while_loop --seconds 0 && tenon profile builtin:cond --seconds 0");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("host if"), std::string::npos) << outcome.out;
}

TEST_F(Profile, SaysWhichSizesNobodyGave) {
  EXPECT_EQ(shell("tenon profile builtin:chain5_any_size --seconds 0").error,
            "note: sizes that are not given are 1; give them with --dim rows=…\n");
  EXPECT_EQ(shell("tenon profile builtin:chain5_any_size --seconds 0 --dim rows=64").error, "");
}

TEST_F(Profile, RefusesWhatItCannotDo) {
  expect_refused("tenon profile none.onnx", "cannot open none.onnx: No such file or directory");
  expect_refused("tenon profile builtin:tiny --trace none/out.json",
                 "cannot write none/out.json: No such file or directory");
  for (const std::string option : {"--top 0", "--threads 0", "--seconds -1", "--precision f8"}) {
    const Outcome outcome = shell("tenon profile builtin:tiny " + option);
    EXPECT_EQ(outcome.status, 2) << option;
    EXPECT_NE(outcome.error.find(option.substr(0, option.find(' '))), std::string::npos) << outcome.error;
  }
}

}  // namespace
}  // namespace tenon::cli
