#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

using OptimizeOutput = CommandLine;

TEST_F(OptimizeOutput, TheSuffixSaysInWhichForm) {
  expect_done(
      "tenon optimize builtin:tiny -o a.onnx >/dev/null && tenon optimize builtin:tiny -o a.tenon >/dev/null "
      "&& "
      "tenon run a.onnx >b && tenon run a.tenon >c && cmp b c",
      "");
  EXPECT_EQ(files(), (std::set<std::string>{"a.onnx", "a.tenon", "b", "c"}));
}

TEST_F(OptimizeOutput, OtherSuffixesAreRefused) {
  expect_refused("tenon optimize builtin:tiny -o a.pb",
                 "cannot write a.pb: its name must end in .onnx or .tenon");
  expect_refused("tenon optimize builtin:tiny -o a.tenon --opset 17",
                 "--opset is for .onnx files, but a.tenon is written");
  expect_refused("tenon optimize builtin:tiny -o a.onnx --opset 12",
                 "opset 12 cannot be written, only 13 to 28");
  EXPECT_EQ(files(), std::set<std::string>());
}

}  // namespace
}  // namespace tenon::cli
