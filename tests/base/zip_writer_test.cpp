#include "base/zip_writer.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "base/zip_file.h"

namespace tenon {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class ZipWriterTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string path_ = folder_.write("a.zip", "").string();
  FileWriter file_{path_};
  ZipWriter archive_{file_};

  ZipFile read() {
    archive_.finish();
    file_.close();
    return ZipFile(MappedFile::open(path_));
  }
};

std::string content(const ZipFile& archive, std::string_view name) {
  const ZipFile::Entry* entry = archive.find(name);
  std::string text(entry->size, '\0');
  archive.read(*entry, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST_F(ZipWriterTest, WritesWhatZipFileReads) {
  archive_.add("b", {bytes("one"), bytes("two")});
  archive_.add("a/gr\xc3\xbc\xc3\x9f", {});
  const ZipFile archive = read();
  ASSERT_EQ(archive.entries().size(), 2U);
  EXPECT_EQ(content(archive, "b"), "onetwo");
  EXPECT_EQ(content(archive, "a/gr\xc3\xbc\xc3\x9f"), "");
  EXPECT_EQ(archive.find("b")->place, 0U);
  EXPECT_FALSE(archive.find("b")->deflated);
}

TEST_F(ZipWriterTest, WritesAnArchiveOfNothing) { EXPECT_TRUE(read().entries().empty()); }

// More than the 16 bits of the usual directory count.
TEST_F(ZipWriterTest, CountsBeyond65535) {
  for (int i = 0; i < 70000; ++i)
    archive_.add(fmt::format("{}", i), {bytes(fmt::format("{}", i % 7))});
  const ZipFile archive = read();
  EXPECT_EQ(archive.entries().size(), 70000U);
  EXPECT_EQ(content(archive, "69999"), "6");
}

TEST_F(ZipWriterTest, RefusesTwoOfOneNameAndNamesTooLong) {
  archive_.add("a", {});
  expect_error<UserError>([&] { archive_.add("a", {}); }, "there are two of this name");
  expect_error<UserError>(
      [&] { archive_.add(std::string(70000, 'a'), {}); },
      "the name of an entry has 70000 bytes, but a zip archive holds names of 65535 at most");
}

}  // namespace
}  // namespace tenon
