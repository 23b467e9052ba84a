#include <gtest/gtest.h>

#include "cli/shell.h"
#include "frontends/builtin/builtin.h"
#include "ops/registry.h"
#include "views/views.h"

namespace tenon::cli {
namespace {

using Print = CommandLine;

TEST_F(Print, ShowsEachForm) {
  register_ops();
  const std::unique_ptr<Graph> tiny = builtin::make_model("tiny");
  for (const View& view : all_views())
    expect_done("tenon print builtin:tiny --as " + std::string(view.name), view.render(*tiny));
}

TEST_F(Print, ShowsTheTextFormUnlessToldOtherwise) {
  expect_done("tenon print builtin:tiny >a; tenon print builtin:tiny --as tenon >b; cmp a b", "");
}

TEST_F(Print, ChoosesThePassesThatHaveRun) {
  const auto show = [&](const std::string& options) {
    const Outcome outcome = shell("tenon print builtin:unoptimized --stage " + options);
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    return outcome.out;
  };
  const auto count_relus = [](const std::string& text) {
    size_t count = 0;
    for (size_t at = text.find("relu("); at != std::string::npos; at = text.find("relu(", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(count_relus(show("optimised")), 2);
  EXPECT_EQ(count_relus(show("optimised --disable merge-equal")), 3);
  EXPECT_EQ(count_relus(show("target --disable merge-equal")), 3);
  EXPECT_NE(show("optimised --passes merge-equal").find("{1}"), std::string::npos);
  EXPECT_EQ(show("optimised").find("mul(%0, %1)\n  %3: f32[4,4] = mul"), std::string::npos);
}

TEST_F(Print, CompilesWithoutTargetPasses) {
  folder_.write("m.tenon", "graph main(%x: f32[2,4]) {\n  %y = log_softmax(%x, axis=1)\n  return %y\n}\n");
  expect_done("tenon print m.tenon --stage target --disable decompose-ops",
              "graph main(%x: f32[2,4]) {\n  %y: f32[2,4] = log_softmax(%x, axis=1)\n  return %y\n}\n");
  EXPECT_EQ(shell("tenon print m.tenon --stage target").out.find("log_softmax"), std::string::npos);
}

TEST_F(Print, HonoursNumerics) {
  folder_.write("m.tenon", "graph main(%x: f32[4]) {\n  %0 = exp(%x)\n  %y = log(%0)\n  return %y\n}\n");
  EXPECT_NE(shell("tenon print m.tenon --stage optimised --numerics strict").out.find("log("),
            std::string::npos);
  EXPECT_EQ(shell("tenon print m.tenon --stage optimised --numerics fast").out.find("log("),
            std::string::npos);
}

TEST_F(Print, RefusesPassesWhereNoneHaveRun) {
  const std::string hint = "\n  hint: --stage optimised";
  expect_refused("tenon print builtin:tiny --disable simplify",
                 "at the stage imported no passes have run that could be chosen" + hint);
  expect_refused("tenon print builtin:tiny --stage gradient --numerics fast",
                 "at the stage gradient no passes have run that could be chosen" + hint);
  expect_refused("tenon print builtin:tiny --stage optimised --passes simplify --disable simplify",
                 "--passes and --disable both name simplify");
  expect_refused("tenon print builtin:tiny --stage optimised --disable simplfy",
                 "there is no pass \"simplfy\"\n  hint: did you mean simplify?");
}

TEST_F(Print, WhatItShowsIsAModel) {
  expect_done("tenon print builtin:tiny >a.tenon; tenon print a.tenon >b.tenon; cmp a.tenon b.tenon", "");
}

TEST_F(Print, WhatItSavesReadsBackAnywhere) {
  expect_done(
      "mkdir there && tenon print builtin:resnet_block -o there/a.tenon && tenon run there/a.tenon >b && "
      "tenon run builtin:resnet_block >c && cmp b c",
      "");
  expect_done("ls there", "a.tenon\na.tenon.weights\n");
  expect_refused("tenon print builtin:tiny -o none/a.tenon",
                 "cannot write none/a.tenon: No such file or directory");
}

TEST_F(Print, SaysThatTextDoesNotReadBack) {
  const std::string note =
      "note: 15 constants are shown by a hash alone; -o FILE.tenon writes text that reads back\n";
  expect("tenon print builtin:resnet_block >a.tenon", 0, "", note);
  expect_done("tenon print builtin:resnet_block -o b.tenon", "");
  expect_done("tenon print b.tenon >c", "");
  expect_done("tenon print builtin:resnet_block --quiet >d", "");
  expect_done("tenon print builtin:resnet_block --as fx >e", "");
}

TEST_F(Print, WhatItSavesMovesWithTheFileItRefersTo) {
  expect_done(
      "tenon print builtin:resnet_block -o a.tenon && tenon print a.tenon -o b.tenon && mkdir there && "
      "mv a.tenon.weights b.tenon there && tenon run there/b.tenon >b && tenon run builtin:resnet_block >c "
      "&& "
      "cmp b c",
      "");
}

TEST_F(Print, KnowsBeforeItReadsThatAFileCannotBeWritten) {
  for (const std::string form : {"tenon", "fx"})
    expect_refused("tenon print none.onnx -o none/a --as " + form,
                   "cannot write none/a: No such file or directory");
}

TEST_F(Print, DoesNotWriteOverTheModel) {
  expect_done("tenon optimize builtin:tiny -o m.onnx > log && cp m.onnx kept", "");
  expect_refused("tenon print m.onnx -o ./m.onnx", "./m.onnx is the model itself, which would be lost");
  expect_refused("tenon run m.onnx --outputs m.onnx", "m.onnx is the model itself, which would be lost");
  expect_done("cmp m.onnx kept", "");
}

TEST_F(Print, WritesOtherFormsToFilesToo) {
  expect_done("tenon print builtin:tiny --as fx -o a && tenon print builtin:tiny --as fx >b && cmp a b", "");
}

TEST_F(Print, ShowsGradientsInAnyForm) {
  const Outcome text = shell("tenon print builtin:tiny --stage gradient");
  EXPECT_EQ(text.status, 0);
  EXPECT_TRUE(text.out.starts_with("graph tiny(%x: f32[1,4], %grad_seed: f32[1,3]) {")) << text.out;
  EXPECT_NE(text.out.find(" as \"grad_linear.weight\""), std::string::npos) << text.out;
  EXPECT_NE(shell("tenon print builtin:tiny --stage gradient --as fx").out.find("placeholder    grad_seed"),
            std::string::npos);
  expect_done("tenon print builtin:tiny --stage imported >a && tenon print builtin:tiny >b && cmp a b", "");
}

TEST_F(Print, ShowsTheKernelsOfACompiledModel) {
  folder_.write(
      "chain.tenon",
      "graph main(%x: f32[6], %w: f32[6]) {\n  %a = mul(%x, %w)\n  %y = relu(%a)\n  return %y\n}\n");
  expect_done(
      "tenon print chain.tenon --stage scheduled -o a && tenon print chain.tenon --stage scheduled >b && cmp "
      "a b",
      "");
  const Outcome text = shell("cat a");
  EXPECT_TRUE(text.out.starts_with("// \"%")) << text.out;
  EXPECT_NE(text.out.find("\nkernel kernel0(x0: f32[6], x1: f32[6]) -> (y0: f32[6]) {\n"), std::string::npos)
      << text.out;
  const Outcome read_back = shell("tenon loops a");
  EXPECT_EQ(read_back.status, 0) << read_back.error;
  EXPECT_EQ(read_back.out, text.out.substr(text.out.find("kernel ")));
}

TEST_F(Print, ShowsTheProgramOfACompiledModel) {
  folder_.write("two.tenon",
                "graph main(%x: f32[n,4]) {\n  %k = constant(value=i64[1] {2})\n  %a = relu(%x)\n"
                "  %v, %i = top_k(%a, %k, axis=1)\n  return %v, %i\n}\n");
  expect_done("tenon print two.tenon --stage program",
              "program main where n = 1 {\n"
              "  v0: f32[n,4] input \"x\"\n"
              "  v1: i64[1] constant\n"
              "  v3: f32[n,2] output \"v\"\n"
              "  v4: i64[n,2] output \"i\"\n"
              "  alloc v2: f32[n,4] at 0\n"
              "  v2 = kernel0(v0)  // \"%a\"\n"
              "  v3, v4 = host top_k(v2, v1)  // \"%v\"\n"
              "  dealloc v2\n"
              "  return v3, v4\n"
              "}\n"
              "arena: 64 B, of which 64 B are in use at one time\n");
  // A size that is called as a loop variable may be.
  EXPECT_EQ(
      shell("sed s/n,4/i0,4/ two.tenon >numbered.tenon; tenon print numbered.tenon --stage program").status,
      0);
}

TEST_F(Print, SizesThatDoNotFitAreToBeGiven) {
  folder_.write("halves.tenon",
                "graph main(%x: f32[n]) {\n  %s = constant(value=i64[2] {-1, 2})\n  %y = reshape(%x, %s)\n"
                "  return %y\n}\n");
  expect_refused(
      "tenon print halves.tenon --stage program",
      "node %y: reshape: 1 elements do not divide into [-1,2]\n  x  %x: f32[1]\n  shape  %s: i64[2]\n"
      "  hint: sizes that are not given are 1; give them with --dim n=…");
  EXPECT_EQ(shell("tenon print halves.tenon --stage program --dim n=6").status, 0);
}

TEST_F(Print, FusionSaysWhichSizesNobodyGave) {
  folder_.write("two.tenon", "graph main(%x: f32[n,m]) {\n  %y = relu(%x)\n  return %y\n}\n");
  const auto first_lines = [&](const std::string& options) {
    return shell("tenon print two.tenon --stage fused " + options + " | head -3").out;
  };
  EXPECT_EQ(first_lines(""),
            "sizes that are not given count as 1; give them with --dim m=… --dim n=…\n"
            "1 step became 1 kernel\ncounted with m = 1, n = 1\n");
  EXPECT_EQ(first_lines("--dim n=5"),
            "sizes that are not given count as 1; give them with --dim m=…\n"
            "1 step became 1 kernel\ncounted with m = 1\n");
  EXPECT_TRUE(first_lines("--dim n=5 --dim m=3").starts_with("1 step became 1 kernel\n  \"%y\""));
}

TEST_F(Print, ShowsWhatTheTargetPassesLeave) {
  const Outcome text = shell("tenon print builtin:simple_conv_bn --stage target --as fx-code");
  EXPECT_EQ(text.status, 0) << text.out;
  EXPECT_EQ(text.out.find("batch_norm"), std::string::npos) << text.out;
}

TEST_F(Print, StagesAndFormsMustFitEachOther) {
  for (const std::string stage : {"fused", "scheduled", "program"})
    expect_refused("tenon print builtin:tiny --as fx --stage " + stage,
                   "--as fx is for graphs: the stage " + stage + " is shown in one form");
  EXPECT_EQ(shell("tenon print builtin:tiny --stage nonsense").status, 2);
}

using Ops = CommandLine;

TEST_F(Ops, AreListedOrToldAbout) {
  const Outcome list = shell("tenon ops");
  EXPECT_EQ(list.status, 0);
  EXPECT_NE(list.out.find("\nrelu "), std::string::npos);
  const Outcome relu = shell("tenon ops relu");
  EXPECT_EQ(relu.status, 0);
  EXPECT_TRUE(relu.out.starts_with("relu(x: T) -> (y: T)")) << relu.out;
}

TEST_F(Ops, OfPyTorchAreReadOrMissing) {
  const Outcome torch = shell("tenon ops --frontend torch");
  EXPECT_NE(torch.out.find("add.Tensor                                     core   read\n"),
            std::string::npos);
  EXPECT_NE(torch.out.find("randperm                                       core   missing\n"),
            std::string::npos);
  EXPECT_NE(torch.out.find("scaled_dot_product_attention                   other  read\n"),
            std::string::npos);
  EXPECT_EQ(shell("tenon ops --frontend nonsense").status, 2);
}

TEST_F(Ops, AnUnknownOneGetsAHint) {
  expect_refused("tenon ops rellu", "there is no op rellu\n  hint: did you mean relu?");
  expect_refused("tenon ops zzzzzzzzzz", "there is no op zzzzzzzzzz\n  hint: tenon ops lists them");
}

}  // namespace
}  // namespace tenon::cli
