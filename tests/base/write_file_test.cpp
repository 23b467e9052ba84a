#include "base/write_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "base/child_process.h"
#include "base/expect_error.h"
#include "base/temporary_folder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

size_t count_files(const TemporaryFolder& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

TEST(WriteFile, WritesAndReplacesTheContent) {
  const TemporaryFolder folder;
  const std::string long_content(1'000'000, 'x');
  for (const std::string& content :
       {std::string("one"), std::string(), std::string("a\0b", 3), long_content}) {
    write_file(folder / "a", content);
    EXPECT_EQ(read_file(folder / "a"), content);
  }
  EXPECT_EQ(count_files(folder), 1u);
}

TEST(WriteFile, GoesThroughALink) {
  const TemporaryFolder folder;
  fs::create_symlink(folder.write("a", "old"), folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(read_file(folder / "a"), "new");
}

TEST(WriteFile, LeavesTheOldFileAndNothingElseWhenWritingFails) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a", "precious").string();
  expect_error<UserError>(
      [&] {
        write_file(path, [&](const fs::path& temporary) {
          EXPECT_EQ(temporary.parent_path(), folder.path());
          std::ofstream(temporary) << "half";
          throw user_error("the rest is missing");
        });
      },
      "cannot write " + path + ": the rest is missing");
  EXPECT_EQ(read_file(path), "precious");
  EXPECT_EQ(count_files(folder), 1u);
}

TEST(WriteFile, SaysWhyItFailed) {
  const TemporaryFolder folder;
  const std::string absent = (folder / "none/a").string(), present = folder.path().string();
  for (const auto& [path, why] :
       {std::pair(absent, "No such file or directory"), std::pair(present, "not a regular file"),
        std::pair(std::string("/dev/null"), "not a regular file")}) {
    const std::string message = "cannot write " + path + ": " + why;
    expect_error<UserError>([&] { write_file(path, "x"); }, message);
    expect_error<UserError>([&] { check_writable(path); }, message);
  }
  EXPECT_EQ(count_files(folder), 0u);
}

TEST(WriteFile, LeavesNothingWhereThereIsNoRoom) {
  const TemporaryFolder folder;
  const ChildEnd end = run_in_child(60, [&] {
    const rlimit small{10, 10};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    try {
      write_file(folder / "a", "more than ten bytes");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("it was written");
  });
  EXPECT_EQ(end.report, "cannot write " + (folder / "a").string() + ": File too large");
  EXPECT_EQ(count_files(folder), 0u);
}

TEST(FileWriter, AppendsPieces) {
  const TemporaryFolder folder;
  FileWriter file(folder.write("a", "what was there"));
  file.append("one, ");
  file.append(std::string_view());
  EXPECT_EQ(file.size(), 5u);
  file.append("two");
  file.close();
  EXPECT_EQ(file.size(), 8u);
  EXPECT_EQ(read_file(folder / "a"), "one, two");
}

TEST(FileWriter, SaysWhyItFailed) {
  const TemporaryFolder folder;
  expect_error<UserError>([&] { FileWriter(folder / "none"); }, "No such file or directory");
  const fs::path path = folder.write("a", "");
  const ChildEnd end = run_in_child(60, [&] {
    const rlimit small{10, 10};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &small);
    FileWriter file(path);
    file.append("ten bytes!");
    try {
      file.append("more");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("it was written");
  });
  EXPECT_EQ(end.report, "File too large");
}

TEST(WriteFile, CheckingLeavesEverythingAsItWas) {
  const TemporaryFolder folder;
  check_writable(folder / "new");
  EXPECT_EQ(count_files(folder), 0u);
  const fs::path old = folder.write("old", "precious");
  check_writable(old);
  EXPECT_EQ(read_file(old), "precious");
  EXPECT_EQ(count_files(folder), 1u);
}

}  // namespace
}  // namespace tenon
