// The documentation shows the example as it is, and what it prints.
#include "cli/shell.h"

namespace tenon::cli {
namespace {

using Examples = CommandLine;

TEST_F(Examples, AreInTheDocumentation) {
  const Outcome outcome = shell("example_trace");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error, "");
  const std::filesystem::path root = TENON_ROOT;
  const std::string document = read_file(root / "docs/cpp.md");
  const auto expect_block = [&](const std::string& block) {
    EXPECT_NE(document.find(block), std::string::npos) << "docs/cpp.md lacks\n" << block;
  };
  expect_block("```cpp\n" + read_file(root / "examples/trace.cpp") + "```\n");
  expect_block("```cmake\n" + read_file(root / "examples/CMakeLists.txt") + "```\n");
  expect_block("```console\n$ build/example_trace\n" + outcome.out + "```\n");
}

}  // namespace
}  // namespace tenon::cli
