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
                 "--opset: it must be a whole number from 13 to 28, but is 12\n"
                 "  hint: tenon optimize --help says more");
  EXPECT_EQ(files(), std::set<std::string>());
}

TEST_F(OptimizeOutput, NamesTheFileOfWeights) {
  expect_done(
      "tenon optimize builtin:resnet_block -o b.tenon | tail -n 1 | sed -E 's/[0-9.]+ (B|KiB)/SIZE/g'",
      "wrote b.tenon: SIZE, with SIZE of weights in b.tenon.weights\n");
  expect_done("tenon optimize builtin:unoptimized -o u.tenon | tail -n 1", "wrote u.tenon: 279 B\n");
}

}  // namespace
}  // namespace tenon::cli
