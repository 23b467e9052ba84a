#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Optimize = CommandLine;

TEST_F(Optimize, SaysHowManyNodesAreLeft) {
  expect_done("tenon optimize builtin:unoptimized | tail -1", "7 nodes became 5\n");
}

TEST_F(Optimize, WritesTheModel) {
  expect_done(
      "tenon optimize builtin:resnet_block -o a.tenon >log && tenon optimize a.tenon | tail -1 | "
      "awk '{ print $1 - $4 }'",
      "0\n");
}

TEST_F(Optimize, ChoosesPasses) {
  expect_done(
      "tenon optimize builtin:unoptimized --disable simplify,merge-equal,normalise,recognise-functions | "
      "tail -1",
      "7 nodes became 7\n");
  expect_done("tenon optimize builtin:unoptimized --passes merge-equal | tail -1", "7 nodes became 6\n");
  expect_refused("tenon optimize builtin:tiny --passes simplfy",
                 "there is no pass \"simplfy\"\n  hint: did you mean simplify?");
  expect_refused("tenon optimize builtin:tiny --numerics loose",
                 "numerics must be strict, default or fast, but is \"loose\"");
}

TEST_F(Optimize, SaysWhatWasNotDone) {
  expect_done(
      "echo 'graph g(%x: f32[2]) { %c = constant(value=f32[2] {3, 0}) %y = div(%x, %c) return %y }' "
      ">m.tenon; "
      "tenon optimize m.tenon --remarks | tail -1",
      "node %y: normalise: divide-by-constant: not so: 1 / c neither overflows nor underflows\n");
}

TEST_F(Optimize, WritesStatistics) {
  expect_done("tenon optimize builtin:attention -o a.onnx --stats s.json >log", "");
  const auto json = nlohmann::json::parse(read_file(folder_.path() / "s.json"));
  EXPECT_GT(json["nodes_before"], json["nodes_after"]);
  EXPECT_EQ(json["recognised"]["attention"], 1);
  EXPECT_GT(json["applications"], 0);
  EXPECT_GT(json["peak_rss_mib"], 0);
  int64_t nodes = 0;
  for (const auto& [op, count] : json["ops_after"].items())
    nodes += count.get<int64_t>();
  EXPECT_EQ(nodes, json["nodes_after"]);
  EXPECT_EQ(json["passes"][0]["name"], "remove-dead");
  // Counted in the files where they are ONNX.
  expect_done("tenon optimize a.onnx -o b.onnx --stats t.json >log", "");
  EXPECT_EQ(nlohmann::json::parse(read_file(folder_.path() / "t.json"))["nodes_before"], json["nodes_after"]);
}

using Verify = CommandLine;

TEST_F(Verify, ChecksEveryPass) {
  const Outcome outcome = shell("tenon verify builtin:resnet_block --samples 1 --json v.json");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  const auto json = nlohmann::json::parse(read_file(folder_.path() / "v.json"));
  ASSERT_FALSE(json["passes"].empty());
  EXPECT_EQ(json["passes"].back()["name"], "everything");
  for (const auto& pass : json["passes"])
    for (const char* check : {"numbers", "gradients", "lint", "parameters"})
      EXPECT_EQ(pass[check]["verdict"], "ok") << pass["name"] << " " << check;
}

using Bisect = CommandLine;

TEST_F(Bisect, FindsNothingWhereNothingIsWrong) {
  expect_done("tenon bisect builtin:resnet_block", "no rewrite changes what the model computes\n");
}

using ListRules = CommandLine;

TEST_F(ListRules, KnowsTheirNames) {
  expect_refused("tenon rules multiply-by-on",
                 "there is no rule \"multiply-by-on\"\n  hint: did you mean multiply-by-one?");
  expect_done("tenon rules | grep -c multiply-by-one", "1\n");
  expect_done("tenon passes | grep -c fold-constants", "1\n");
}

}  // namespace
}  // namespace tenon::cli
