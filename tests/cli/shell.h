// shell.h — runs the built program as a user would: a shell command in a folder made for the test.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <set>

#include "base/temporary_folder.h"
#include "source_tree.h"

namespace tenon::cli {

struct Outcome {
  int status;  // as the shell gives it: 128 + N where signal N ended the last program
  std::string out, error;
};

class CommandLine : public ::testing::Test {
 protected:
  // `tenon` is the program that was built.
  Outcome shell(const std::string& command) const {
    const auto quoted = [](const std::filesystem::path& path) { return "'" + path.string() + "'"; };
    const std::string script = "cd " + quoted(folder_.path()) + " && PATH=" + quoted(build_folder()) +
                               ":\"$PATH\" && { " + command + "\n} >" + quoted(logs_ / "out") + " 2>" +
                               quoted(logs_ / "error");
    const int status = std::system(script.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(logs_ / "out"),
            read_file(logs_ / "error")};
  }

  void expect(const std::string& command, int status, const std::string& out,
              const std::string& error) const {
    SCOPED_TRACE(command);
    const Outcome outcome = shell(command);
    EXPECT_EQ(outcome.status, status);
    EXPECT_EQ(outcome.out, out);
    EXPECT_EQ(outcome.error, error);
  }
  void expect_done(const std::string& command, const std::string& out) const { expect(command, 0, out, ""); }
  void expect_refused(const std::string& command, const std::string& message) const {
    expect(command, 2, "", "tenon: " + message + "\n");
  }

  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.insert(entry.path().filename().string());
    return names;
  }

  TemporaryFolder folder_, logs_;
};

}  // namespace tenon::cli
