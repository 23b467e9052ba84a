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
        command + " >log & until [ -n \"$(ls tmp)\" ]; do sleep 0.01; done; kill -" + signal +
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

}  // namespace
}  // namespace tenon::cli
