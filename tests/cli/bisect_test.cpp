#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Bisect = CommandLine;

const std::string kModel = "'" + (source_tree() / "tests/data/models/scan").string() + "'";

TEST_F(Bisect, TakesInputsAndExpectedOutputs) {
  expect_done("tenon bisect " + kModel + ".onnx --inputs " + kModel + ".npz --expected " + kModel + ".npz",
              "no rewrite changes what the model computes, nor does its program\n");
  // What it gives for other inputs is not expected.
  const Outcome run = shell("tenon run " + kModel + ".onnx --outputs other.npz");
  EXPECT_EQ(run.status, 0) << run.error;
  expect_refused("tenon bisect " + kModel + ".onnx --inputs " + kModel + ".npz --expected other.npz",
                 "the model does not agree with the expected outputs even before it is optimised");
}

TEST_F(Bisect, ExpectedOutputsAreThoseOfGivenInputs) {
  expect_refused("tenon bisect builtin:tiny --expected out.npz",
                 "--expected says what comes out for some inputs: give those with --inputs");
}

TEST_F(Bisect, NamesOutputsThatAFileLacks) {
  const Outcome run = shell("tenon run builtin:tiny --outputs out.npz");
  EXPECT_EQ(run.status, 0) << run.error;
  expect_refused("tenon bisect " + kModel + ".onnx --inputs " + kModel + ".npz --expected out.npz",
                 "out.npz: there is no \"getitem_1\" (nor output_0) for the output of type f32[6,4]\n"
                 "  hint: it has output, but the outputs are getitem_1");
}

TEST_F(Bisect, WritesOnnxOrItsOwnForm) {
  expect_refused("tenon bisect builtin:tiny -o small.txt",
                 "cannot write small.txt: its name must end in .onnx or .tenon");
}

}  // namespace
}  // namespace tenon::cli
