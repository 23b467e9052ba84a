#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "base/expect_error.h"
#include "base/temporary_folder.h"

namespace tenon {
namespace {

TEST(MappedFile, GivesTheBytes) {
  const TemporaryFolder folder;
  const std::string content("a\0b\n", 4);
  const auto file = MappedFile::open(folder.write("data", content));
  ASSERT_EQ(file->bytes().size(), 4u);
  EXPECT_EQ(std::memcmp(file->bytes().data(), content.data(), 4), 0);
  EXPECT_EQ(file->path(), folder / "data");
  EXPECT_TRUE(file->is_on_disk());
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  EXPECT_TRUE(MappedFile::open(folder.write("data", ""))->bytes().empty());
}

TEST(MappedFile, OutlivesTheFilesName) {
  const TemporaryFolder folder;
  const auto file = MappedFile::open(folder.write("data", "abc"));
  std::filesystem::remove(folder / "data");
  EXPECT_EQ(file->bytes()[2], std::byte{'c'});
}

TEST(MappedFile, CopiesWhatIsInMemory) {
  std::string content("a\0b\n", 4);
  const auto file = MappedFile::copy("model.onnx", std::as_bytes(std::span(content)));
  content[0] = 'x';
  ASSERT_EQ(file->bytes().size(), 4u);
  EXPECT_EQ(std::memcmp(file->bytes().data(), "a\0b\n", 4), 0);
  EXPECT_EQ(file->path(), "model.onnx");
  EXPECT_FALSE(file->is_on_disk());
  EXPECT_TRUE(MappedFile::copy("model.onnx", {})->bytes().empty());
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  const std::string missing = (folder / "missing").string();
  expect_error<UserError>([&] { MappedFile::open(missing); },
                          "cannot open " + missing + ": No such file or directory");
  expect_error<UserError>([&] { MappedFile::open(folder.path()); },
                          "cannot open " + folder.path().string() + ": it is a folder");
  expect_error<UserError>([] { MappedFile::open("/dev/null"); }, "cannot open /dev/null: not a regular file");
}

TEST(MappedFile, DoesNotWaitForTheWriterOfAPipe) {
  const TemporaryFolder folder;
  const std::string pipe = (folder / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_error<UserError>([&] { MappedFile::open(pipe); }, "cannot open " + pipe + ": not a regular file");
}

}  // namespace
}  // namespace tenon
