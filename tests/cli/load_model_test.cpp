#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class LoadModel : public CommandLine {
 protected:
  void SetUp() override {
    folder_.write("model.tenon", "graph main(%x: f32[n,m]) {\n  %y = relu(%x)\n  return %y\n}\n");
    folder_.write("fixed.tenon", "graph main(%x: f32[2]) {\n  return %x\n}\n");
  }
};

TEST_F(LoadModel, DimBindsASymbol) {
  expect_done("tenon print model.tenon --dim n=2",
              "graph main(%x: f32[2,m]) {\n  %y: f32[2,m] = relu(%x)\n  return %y\n}\n");
  expect_done("tenon print model.tenon --dim n=2 --dim m=0",
              "graph main(%x: f32[2,0]) {\n  %y: f32[2,0] = relu(%x)\n  return %y\n}\n");
}

TEST_F(LoadModel, DimOfNoInputIsRefused) {
  expect_refused("tenon print model.tenon --dim k=2",
                 "--dim k=2: no input has a dimension k\n  hint: there are m, n");
  expect_refused("tenon print fixed.tenon --dim n=2",
                 "--dim n=2: no input has a dimension n\n  hint: the sizes of all inputs are fixed");
}

TEST_F(LoadModel, DimThatDoesNotFitNamesTheNode) {
  folder_.write("halves.tenon",
                "graph main(%x: f32[n]) {\n  %s = constant(value=i64[2] {2, -1})\n  %y = reshape(%x, %s)\n"
                "  return %y\n}\n");
  expect_refused("tenon print halves.tenon --dim n=3",
                 "halves.tenon: node %y: reshape: 3 elements do not divide into [2,-1]\n  x  %x: f32[3]\n"
                 "  shape  %s: i64[2]");
}

TEST_F(LoadModel, DimOfAnotherFormIsRefused) {
  const auto expect_error = [&](const std::string& dim, const std::string& message) {
    expect_refused("tenon print model.tenon --dim " + dim, "--dim " + dim + ": " + message);
  };
  expect_error("n", "it should look like batch=4");
  expect_error("=2", "the name is missing, as in batch=4");
  expect_error("n=", "the size is missing, as in batch=4");
  expect_error("n=two", "two is no whole number");
  expect_error("n=2x", "2x is no whole number");
  expect_error("n=4.5", "4.5 is no whole number");
  expect_error("n=-1", "a size cannot be below 0");
  expect_error("n=-99999999999999999999", "a size cannot be below 0");
  expect_error("n=99999999999999999999", "no size is as large");
}

TEST_F(LoadModel, OneSizeIsGivenToADimension) {
  for (const char* dims : {"--dim n=4 --dim n=5", "--dim n=4 n=5", "--dim n=5 --dim n=5"})
    EXPECT_EQ(shell(std::string("tenon print model.tenon ") + dims).status, 2) << dims;
  expect_refused("tenon print model.tenon --dim n=4 --dim n=5", "--dim n=5: n is given twice, as 4 too");
  const Outcome outcome = shell("tenon print model.tenon --dim n=4,n=5");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.error.find("; each is given by a --dim of its own"), std::string::npos) << outcome.error;
}

TEST_F(LoadModel, WhatIsNoModelIsRefused) {
  expect_refused("tenon print none.onnx", "cannot open none.onnx: No such file or directory");
  expect_refused("tenon print none.tenon", "cannot open none.tenon: No such file or directory");
  expect_refused("tenon print model.txt",
                 "model.txt: a model is a .onnx, .pt2, .gguf or .tenon file, or builtin:NAME");
  expect_refused("tenon print model.pth",
                 "model.pth: a model is a .onnx, .pt2, .gguf or .tenon file, or builtin:NAME\n"
                 "  hint: PyTorch writes such a model with torch.export.save(…, \"model.pt2\")");
  EXPECT_EQ(shell("tenon print builtin:nonsense").status, 2);
  folder_.write("bad.tenon", "graph main(");
  EXPECT_EQ(shell("tenon print bad.tenon").status, 2);
  folder_.write("bad.onnx", "bad");
  EXPECT_EQ(shell("tenon print bad.onnx").status, 2);
}

}  // namespace
}  // namespace tenon::cli
