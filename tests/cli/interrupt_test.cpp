#include <gtest/gtest.h>

#include "cli/shell.h"

namespace tenon::cli {
namespace {

class Interrupted : public CommandLine {
 protected:
  // Ends the command by a signal once it has begun to write into tmp/, where its scratch folders and cache
  // are.
  Outcome interrupt(const std::string& command, const std::string& signal) const {
    // Shells have what they start with & ignore SIGINT, unless it is told otherwise.
    return shell(
        "mkdir tmp; export TMPDIR=\"$PWD/tmp\" TENON_CACHE=\"$PWD/tmp/cache\"; env --default-signal=INT " +
        command + " >log & until [ -n \"$(ls tmp)\" ] || ! kill -0 $!; do sleep 0.01; done; kill -" + signal +
        " $!; wait $!");
  }
};

TEST_F(Interrupted, BenchLeavesNothing) {
  for (const auto& [signal, status] : {std::pair("INT", 130), std::pair("TERM", 143)}) {
    const Outcome outcome = interrupt("tenon bench builtin:resnet_block --seconds 60 --json b.json", signal);
    EXPECT_EQ(outcome.status, status) << outcome.error;
    EXPECT_EQ(files(), (std::set<std::string>{"log", "tmp"}));
    expect_done("find tmp -mindepth 1 ! -name cache; rm -rf tmp", "");
  }
}

// Before the end nothing is adopted, and no part of the file is written.
TEST_F(Interrupted, TuneAdoptsNothing) {
  const Outcome outcome = interrupt("tenon tune builtin:resnet_block --seconds 60 --json t.json", "INT");
  EXPECT_EQ(outcome.status, 130) << outcome.error;
  EXPECT_EQ(files(), (std::set<std::string>{"log", "tmp"}));
  expect_done("find tmp -name '*tuned*'", "");
}

// Whenever the signal comes: what is in the folder afterwards is all of the model, or nothing.
TEST_F(Interrupted, OptimizeWritesAllOrNothing) {
  std::string text = "graph main(%x0: f32[4000]) {\n";
  for (int i = 0; i < 300; ++i)
    text +=
        fmt::format("  %w{0}: f32[4000] = sin(%x{0})\n  %x{1}: f32[4000] = add(%x{0}, %w{0})\n", i, i + 1);
  folder_.write("long.tenon", text + "  return %x300\n}\n");
  const std::set<std::string> before = files();
  for (const char* delay : {"0.05", "0.1", "0.2", "0.4"}) {
    const Outcome outcome = shell(std::string("timeout -s INT --preserve-status ") + delay +
                                  " tenon optimize long.tenon -o out.onnx --stats - >/dev/null");
    std::set<std::string> after = files();
    const bool written = after.erase("out.onnx") > 0;
    EXPECT_TRUE(written || outcome.status != 0) << delay;  // a signal may come after the model is written
    EXPECT_EQ(after, before);
    if (written)
      EXPECT_EQ(shell("tenon print out.onnx >/dev/null").status, 0) << delay;
    std::filesystem::remove(folder_ / "out.onnx");
  }
}

}  // namespace
}  // namespace tenon::cli
