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

using Ops = CommandLine;

TEST_F(Ops, AreListedOrToldAbout) {
  const Outcome list = shell("tenon ops");
  EXPECT_EQ(list.status, 0);
  EXPECT_NE(list.out.find("\nrelu "), std::string::npos);
  const Outcome relu = shell("tenon ops relu");
  EXPECT_EQ(relu.status, 0);
  EXPECT_TRUE(relu.out.starts_with("relu(x: T) -> (y: T)")) << relu.out;
}

TEST_F(Ops, AnUnknownOneGetsAHint) {
  expect_refused("tenon ops rellu", "there is no op rellu\n  hint: did you mean relu?");
  expect_refused("tenon ops zzzzzzzzzz", "there is no op zzzzzzzzzz");
}

}  // namespace
}  // namespace tenon::cli
