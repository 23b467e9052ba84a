#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"
#include "frontends/onnx_model.h"
#include "tensor/npy.h"

namespace tenon::cli {
namespace {

using Optimize = CommandLine;

TEST_F(Optimize, SaysHowManyNodesAreLeft) {
  expect_done("tenon optimize builtin:unoptimized | tail -1", "7 nodes became 5\n");
}

// As ONNX has them, where a convolution takes a bias, and without what is computed of weights alone.
TEST_F(Optimize, CountsTheSameWhetherItWritesOrNot) {
  for (const char* output : {"", " -o a.onnx", " -o a.tenon"})
    expect_done(std::string("tenon optimize builtin:resnet_block") + output + " | grep became",
                "8 nodes became 5\n");
  expect_done("tenon optimize a.onnx | grep became", "5 nodes became 5\n");
  expect_done("tenon optimize a.tenon | grep became", "5 nodes became 5\n");
}

TEST_F(Optimize, CountsWhatOnnxCannotSayAsItIs) {
  folder_.write("m.tenon", "graph g(%x: f8e5m2[2]) { %y = relu(%x) %z = relu(%y) return %z }");
  expect_done("tenon optimize m.tenon | tail -1", "2 nodes became 1\n");
}

TEST_F(Optimize, SaysWhatItWrote) {
  const auto expect_written = [&](const std::string& arguments, const std::string& line) {
    expect_done("tenon optimize " + arguments + " | tail -1 | sed 's/[0-9]* B/SIZE/'", line + "\n");
  };
  expect_written("builtin:attention --passes remove-dead -o a.onnx --opset 17",
                 "wrote a.onnx: SIZE, opset 17");
  expect_written("a.onnx -o b.onnx", "wrote b.onnx: SIZE, opset 23, which Attention needs, instead of 17");
  expect_written("a.onnx --passes remove-dead -o a.onnx", "wrote a.onnx: SIZE, opset 17");
  expect_written("b.onnx -o b.tenon", "wrote b.tenon: SIZE");
  namespace encode = onnx::encode;
  folder_.write("old.onnx", encode::model({.nodes = {encode::node("Relu", {"x"}, {"y"})},
                                           .inputs = {encode::value("x", encode::kFloat, {2})},
                                           .outputs = {encode::value("y", encode::kFloat, {2})}},
                                          {}, {encode::opset(9)}));
  expect_written("old.onnx -o new.onnx", "wrote new.onnx: SIZE, opset 13 instead of 9");
  expect_done("tenon optimize b.onnx -o b.tenon --stats - | grep -c wrote; true", "0\n");
}

TEST_F(Optimize, WritesTheModel) {
  expect_done(
      "tenon optimize builtin:resnet_block -o a.tenon >log && tenon optimize a.tenon | grep became | "
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
  expect_refused("tenon optimize builtin:tiny --passes simplify,,merge-equal",
                 "--passes simplify,,merge-equal: a name is missing");
  expect_refused("tenon optimize builtin:tiny --disable ''", "--disable : a name is missing");
  expect_refused("tenon optimize builtin:tiny --passes simplify,merge-equal --disable normalise,simplify",
                 "--passes and --disable both name simplify");
  expect_refused("tenon optimize builtin:tiny --numerics loose",
                 "--numerics: it must be strict, default, fast, but is loose\n"
                 "  hint: tenon optimize --help says more");
}

TEST_F(Optimize, SaysWhatWasNotDone) {
  expect_done(
      "echo 'graph g(%x: f32[2]) { %c = constant(value=f32[2] {3, 0}) %y = div(%x, %c) return %y }' "
      ">m.tenon; "
      "tenon optimize m.tenon --remarks | tail -1",
      "node %y: normalise: divide-by-constant: unmet condition: 1 / c neither overflows nor underflows\n");
  expect_done("tenon optimize builtin:conv_multi_use --remarks | tail -1",
              "a batch_norm node: fold-into-weights: conv-batch-norm: unmet condition: the output of the "
              "convolution has no other users\n");
  expect_done("tenon optimize builtin:tiny --remarks | tail -1",
              "no remarks: no rule found a place and left it alone\n");
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

TEST_F(Optimize, PrintsTheCountsOfTheStatistics) {
  expect_done("tenon optimize builtin:attention -o a.onnx >log", "");
  const Outcome outcome = shell("tenon optimize a.onnx -o b.onnx --stats s.json | grep became");
  const auto json = nlohmann::json::parse(read_file(folder_.path() / "s.json"));
  EXPECT_EQ(outcome.out, json["nodes_before"].dump() + " nodes became " + json["nodes_after"].dump() + "\n");
  // They are counted as ONNX has them where no file is written, too; this one is optimised already.
  expect_done("tenon optimize a.onnx | tail -1 | awk '{ print $1 - $4 }'", "0\n");
}

// An op that we read as several comes out as one, with what can be done around it done.
TEST_F(Optimize, KeepsNodesThatItWouldMakeMoreOf) {
  namespace encode = onnx::encode;
  folder_.write("m.onnx", encode::model({.nodes = {encode::node("LpNormalization", {"x"}, {"y"}),
                                                   encode::node("Relu", {"y"}, {"a"}),
                                                   encode::node("Relu", {"a"}, {"z"})},
                                         .inputs = {encode::value("x", encode::kFloat, {2, 3})},
                                         .outputs = {encode::value("z", encode::kFloat, {2, 3})}},
                                        {}, {encode::opset(17)}));
  expect_done("tenon optimize m.onnx -o n.onnx --remarks | tail -n 3 | sed 's/[0-9]* B/SIZE/'",
              "3 nodes became 2\nwrote n.onnx: SIZE, opset 17\n"
              "node \"y\": write: kept unchanged: it decomposes into several nodes\n");
  expect_done("tenon optimize m.onnx | tail -n 1", "3 nodes became 2\n");
  // What is not ONNX is ours alone.
  expect_done("tenon optimize m.onnx -o n.tenon >/dev/null && tenon run n.tenon >/dev/null", "");
}

TEST_F(Optimize, WritesWhatOnlyOnnxHasAWordFor) {
  namespace encode = onnx::encode;
  folder_.write("m.onnx",
                encode::model({.nodes = {encode::node("STFT", {"x", "step", "", "length"}, {"y"})},
                               .inputs = {encode::value("x", encode::kFloat, {1, 64})},
                               .outputs = {encode::value("y", encode::kFloat, {1, 7, 9, 2})},
                               .initializers = {encode::tensor("step", {}, std::vector<int64_t>{8}),
                                                encode::tensor("length", {}, std::vector<int64_t>{16})}},
                              {}, {encode::opset(17)}));
  expect_done(
      "tenon run m.onnx --outputs a.npz >/dev/null && tenon optimize m.onnx -o n.onnx | grep became && "
      "tenon run n.onnx --outputs b.npz >/dev/null && cmp a.npz b.npz",
      "1 nodes became 1\n");
}

// A loop of three iterations takes more nodes when it is unrolled.
TEST_F(Optimize, RevertsPassesThatDoNotPay) {
  namespace encode = onnx::encode;
  const encode::Bytes body = encode::graph(
      {.nodes = {encode::node("Add", {"s", "v"}, {"t"}), encode::node("Exp", {"t"}, {"u"})},
       .inputs = {encode::value("s", encode::kFloat, {4}), encode::value("v", encode::kFloat, {4})},
       .outputs = {encode::value("t", encode::kFloat, {4}), encode::value("u", encode::kFloat, {4})}});
  folder_.write(
      "m.onnx",
      encode::model(
          {.nodes = {encode::node("Scan", {"x", "y"}, {"a", "b"},
                                  {encode::int_attribute("num_scan_inputs", 1),
                                   encode::graph_attribute("body", body)}),
                     encode::node("Relu", {"b"}, {"c"}), encode::node("Relu", {"c"}, {"d"})},
           .inputs = {encode::value("x", encode::kFloat, {4}), encode::value("y", encode::kFloat, {3, 4})},
           .outputs = {encode::value("a", encode::kFloat, {4}), encode::value("d", encode::kFloat, {3, 4})}},
          {}, {encode::opset(17)}));
  expect_done("tenon optimize m.onnx -o n.onnx --remarks | grep -E 'became|reverted'",
              "5 nodes became 4\nthe model: write: unroll-loops was reverted: the model grew\n");
}

TEST_F(Optimize, LeavesAModelUnchangedThatWouldGrow) {
  namespace encode = onnx::encode;
  // Of opset 11: the two axes that softmax normalises together are one only once they are reshaped.
  folder_.write(
      "m.onnx",
      encode::model({.nodes = {encode::node("Softmax", {"x"}, {"y"}, {encode::int_attribute("axis", 1)})},
                     .inputs = {encode::value("x", encode::kFloat, {2, 3, 4})},
                     .outputs = {encode::value("y", encode::kFloat, {2, 3, 4})}},
                    {}, {encode::opset(11)}));
  expect_done("tenon optimize m.onnx -o n.onnx | tail -n 2 | sed 's/[0-9]* B/SIZE/' && cmp m.onnx n.onnx",
              "1 nodes became 1\nwrote n.onnx: SIZE, unchanged\n");
  expect_done("tenon optimize m.onnx -o n.onnx --opset 17 | grep became", "1 nodes became 3\n");
}

TEST_F(Optimize, WantsAFileWhereItIsToldTheOpset) {
  expect_refused("tenon optimize builtin:tiny --opset 17",
                 "--opset is for .onnx files, but none is written\n  hint: name one with -o");
}

using Verify = CommandLine;

TEST_F(Verify, WantsNumbersThatMakeSense) {
  const auto expect_help = [&](const std::string& arguments, const std::string& message) {
    expect_refused("tenon " + arguments, message + "\n  hint: tenon " +
                                             arguments.substr(0, arguments.find(' ')) + " --help says more");
  };
  for (const char* number : {"-1", "nan", "inf", "small"})
    for (const std::string command : {"verify", "bisect"})
      expect_help(command + " builtin:tiny --tolerance " + number,
                  std::string("--tolerance: it must be a number from 0 up, but is ") + number);
  for (const char* number : {"0", "-1", "1.5", "many"})
    expect_help(std::string("verify builtin:tiny --samples ") + number,
                std::string("--samples: it must be a whole number from 1 up, but is ") + number);
  EXPECT_EQ(shell("tenon verify builtin:tiny --tolerance 0 --samples 1").status, 0);
}

TEST_F(Verify, NamesTheSizesThatItCannotFind) {
  folder_.write(
      "thirteenths.tenon",
      "graph main(%x: f32[batch,n]) {\n  %s = constant(value=i64[2] {13, -1})\n  %y = reshape(%x, %s)\n"
      "  return %y\n}\n");
  expect_refused(
      "tenon verify thirteenths.tenon",
      "no small sizes fit: node %y: reshape: 9 elements do not divide into [13,-1]\n"
      "  x  %x: f32[3,3]\n  shape  %s: i64[2]\n  hint: give the sizes with --dim batch=… --dim n=…, or "
      "inputs with --inputs");
  EXPECT_EQ(shell("tenon verify thirteenths.tenon --dim n=13").status, 0);
}

// No table has as many rows, whatever is drawn.
TEST_F(Verify, SaysWhenTheInputsThatDoNotFitWereDrawn) {
  const auto write = [&](const std::string& size) {
    folder_.write("ids.tenon", "graph main(%table: f32[4,2], %ids: i64[" + size +
                                   "]) {\n  %k = constant(value=i64[] {100})\n  %places = add(%ids, %k)\n"
                                   "  %y = gather(%table, %places)\n  return %y\n}\n");
  };
  const std::string problem = "node %y: gather: index 102 is out of range for dimension 0 of size 4\n";
  for (const std::string command : {"verify", "bisect"}) {
    write("3");
    expect_refused("tenon " + command + " ids.tenon",
                   problem + "  hint: the inputs are drawn; give your own with --inputs");
    write("n");
    expect_refused(
        "tenon " + command + " ids.tenon",
        "no small sizes fit: " + problem + "  hint: give the sizes with --dim n=…, or inputs with --inputs");
  }
}

// One of more numbers than every pass is checked with.
TEST_F(Verify, SaysWhenTheInputsOfALargeModelWereDrawn) {
  folder_.write("ids.tenon",
                "graph main(%table: f32[4,2000000], %ids: i64[1]) {\n  %k = constant(value=i64[] {100})\n"
                "  %places = add(%ids, %k)\n  %y = gather(%table, %places)\n  %z = exp(%table)\n"
                "  return %y, %z\n}\n");
  expect_refused("tenon verify ids.tenon",
                 "node %y: gather: index 103 is out of range for dimension 0 of size 4\n"
                 "  hint: the inputs are drawn; give your own with --inputs");
}

TEST_F(Verify, TakesInputs) {
  // A table of which nothing that is drawn has as many rows as the ids want.
  folder_.write("ids.tenon",
                "graph main(%x: f32[rows,2], %ids: i64[n]) {\n  %0 = gather(%x, %ids)\n  %1 = relu(%0)\n"
                "  %y = relu(%1)\n  return %y\n}\n");
  write_npz(folder_ / "in.npz",
            {{"x", Tensor(DType::F32, {2000, 2})}, {"input_1", Tensor::of<int64_t>({1999})}});
  const Outcome outcome = shell("tenon verify ids.tenon --inputs in.npz");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  EXPECT_EQ(outcome.error, "");
  expect_refused("tenon verify ids.tenon --inputs in.npz --samples 2",
                 "--inputs excludes --samples\n  hint: tenon verify --help says more");
  write_npz(folder_ / "in.npz", {{"x", Tensor(DType::F32, {2, 2})}, {"ids", Tensor::of<int64_t>({5})}});
  expect_refused("tenon verify ids.tenon --inputs in.npz",
                 "a gather node: gather: index 5 is out of range for dimension 0 of size 2");
}

TEST_F(Verify, ChecksEveryPass) {
  const Outcome outcome = shell("tenon verify builtin:resnet_block --samples 1 --json v.json");
  EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.error;
  const auto json = nlohmann::json::parse(read_file(folder_.path() / "v.json"));
  ASSERT_FALSE(json["passes"].empty());
  EXPECT_EQ(json["passes"].back()["name"], "compiled program");
  std::set<std::string> levels;
  for (const auto& pass : json["passes"]) {
    const std::string& level = *levels.insert(pass["level"]).first;
    EXPECT_EQ(pass["numbers"]["verdict"], "ok") << pass["name"];
    EXPECT_EQ(pass["lint"]["verdict"], level == "kernels" || level == "compiled" ? "-" : "ok")
        << pass["name"];
    for (const char* check : {"gradients", "parameters"})
      EXPECT_EQ(pass[check]["verdict"], level == "portable" ? "ok" : "-") << pass["name"] << " " << check;
  }
  EXPECT_EQ(levels, (std::set<std::string>{"compiled", "kernels", "lowered", "portable", "target"}));
}

using Bisect = CommandLine;

TEST_F(Bisect, FindsNothingWhereNothingIsWrong) {
  expect_done("tenon bisect builtin:resnet_block",
              "no rewrite changes what the model computes, nor does its program\n");
}

TEST_F(Optimize, ListsPassesThatChangedNothingTogether) {
  const std::string text =
      shell("tenon optimize builtin:unoptimized --passes merge-equal,simplify,move-transposes").out;
  EXPECT_NE(text.find("\nsimplify "), std::string::npos) << text;
  EXPECT_NE(text.find("\n1 other "), std::string::npos) << text;
  EXPECT_EQ(text.find("move-transposes"), std::string::npos) << text;
  EXPECT_NE(shell("tenon optimize builtin:tiny --passes simplify,move-transposes").out.find("\n2 passes "),
            std::string::npos);
}

using ListRules = CommandLine;

TEST_F(ListRules, KnowsTheirNames) {
  expect_refused("tenon rules multiply-by-on",
                 "there is no rule \"multiply-by-on\"\n  hint: did you mean multiply-by-one?");
  expect_refused("tenon rules simplifyy",
                 "there is no rule \"simplifyy\"\n"
                 "  hint: did you mean simplify? That is a pass, of which tenon passes tells.");
  expect_refused("tenon rules nonsense", "there is no rule \"nonsense\"\n  hint: tenon rules lists them");
  expect_done("tenon passes simplify",
              "simplify               drops operations that change nothing (algebraic simplification)\n"
              "                       before merging, so that more is equal\n");
  expect_refused("tenon passes simplfy", "there is no pass \"simplfy\"\n  hint: did you mean simplify?");
  expect_done("tenon rules | grep -c multiply-by-one", "1\n");
  expect_done("tenon passes | grep -c '^fold-constants'", "2\n");
}

}  // namespace
}  // namespace tenon::cli
