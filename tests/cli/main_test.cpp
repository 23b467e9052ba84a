#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Main = CommandLine;

TEST_F(Main, HelpIsNoError) {
  const Outcome help = shell("tenon --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("Exit status: 0 done, 1 the answer is no, 2 the input is at fault"),
            std::string::npos);
  EXPECT_EQ(help.error, "");
}

TEST_F(Main, TellsItsVersionAndWhatIsBuiltIn) {
  const Outcome version = shell("tenon --version | sed 's/[0-9][0-9.]*/N/g'");
  EXPECT_EQ(version.out, "tenon N\ncpu: LLVM N\nlibraries: fmt N, isl N, zlib N\n");
  EXPECT_EQ(version.error, "");
  expect_done("tenon --version | head -n 1", "tenon 0.1.0\n");
}

TEST_F(Main, SuggestsTheCommandThatWasMeant) {
  expect_refused("tenon prnt builtin:tiny", "there is no command prnt\n  hint: did you mean print?");
  expect_refused(
      "tenon my.onnx",
      "there is no command my.onnx\n  hint: what to do with a model comes first: tenon run my.onnx");
  expect_refused("tenon nonsense", "there is no command nonsense\n  hint: tenon --help lists them");
}

TEST_F(Main, ListsTheBuiltInModels) {
  const Outcome help = shell("tenon print --help");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.out.find("\n  tiny               "), std::string::npos) << help.out;
}

TEST_F(Main, WrongArgumentsAreTheUsersFault) {
  for (const char* command :
       {"tenon", "tenon --nonsense", "tenon print", "tenon run builtin:tiny --seed many",
        "tenon run builtin:tiny --engine warp", "tenon print builtin:tiny --as nonsense"}) {
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.status, 2) << command;
    EXPECT_EQ(outcome.out, "") << command;
    EXPECT_TRUE(outcome.error.starts_with("tenon: ")) << command << "\n" << outcome.error;
  }
  expect_refused(
      "tenon run builtin:tiny --seed many",
      "--seed: it must be a whole number from 0 up, but is many\n  hint: tenon run --help says more");
}

TEST_F(Main, PathsThatTheSystemRefusesAreTheUsersFault) {
  const std::string name(300, 'a');
  expect_refused("tenon conformance " + name, name + ": File name too long");
  expect_refused("tenon print " + name + ".onnx", "cannot open " + name + ".onnx: File name too long");
}

TEST_F(Main, ThatTheOutputCannotBeWrittenIsAnError) {
  for (const char* command :
       {"tenon print builtin:tiny", "tenon run builtin:tiny", "tenon ops", "tenon ops relu", "tenon --help"})
    expect_refused(std::string(command) + " >/dev/full", "cannot write the output: No space left on device");
}

TEST_F(Main, OutputThatNobodyReadsIsNoError) {
  // More than a pipe holds, so that the reader is gone before all is written; also where SIGPIPE was ignored.
  std::string text = "graph main(%x0: f32[1]) {\n";
  for (int i = 0; i < 5000; ++i)
    text += "  %x" + std::to_string(i + 1) + ": f32[1] = relu(%x" + std::to_string(i) + ")\n";
  folder_.write("long.tenon", text + "  return %x5000\n}\n");
  expect("tenon print long.tenon | head -n 1", 0, "graph main(%x0: f32[1]) {\n", "");
  expect("trap '' PIPE; tenon print long.tenon | head -n 1", 0, "graph main(%x0: f32[1]) {\n", "");
}

}  // namespace
}  // namespace tenon::cli
