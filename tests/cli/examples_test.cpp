// The documentation shows the examples as they are, and what they print.
#include "cli/shell.h"

namespace tenon::cli {
namespace {

class Examples : public CommandLine {
 protected:
  void expect_block(const std::string& document, const std::string& block) const {
    EXPECT_NE(read_file(root_ / document).find(block), std::string::npos) << document << " lacks\n" << block;
  }

  void expect_example(const std::string& document, const std::string& name) const {
    const Outcome outcome = shell("example_" + name);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.error, "");
    expect_block(document, "```cpp\n" + read_file(root_ / "examples" / (name + ".cpp")) + "```\n");
    expect_block(document, "```console\n$ build/example_" + name + "\n" + outcome.out + "```\n");
  }

  const std::filesystem::path root_ = source_tree();
};

TEST_F(Examples, AreInTheDocumentation) {
  expect_example("docs/cpp.md", "trace");
  expect_block("docs/cpp.md", "```cmake\n" + read_file(root_ / "examples/CMakeLists.txt") + "```\n");
  expect_example("docs/optimising.md", "rewrite");
}

}  // namespace
}  // namespace tenon::cli
