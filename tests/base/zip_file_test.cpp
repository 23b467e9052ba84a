#include "base/zip_file.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "base/zip_bytes.h"

namespace tenon {
namespace {

struct Opened {
  explicit Opened(const std::string& bytes) : zip(MappedFile::open(folder.write("a.zip", bytes))) {}

  std::string text(const std::string& name) const {
    const ZipFile::Entry* entry = zip.find(name);
    CHECK(entry != nullptr, "there is no {}", name);
    std::string text(entry->size, '?');
    zip.read(*entry, std::as_writable_bytes(std::span(text)));
    return text;
  }

  TemporaryFolder folder;
  ZipFile zip;
};

void refuse(const std::string& bytes, const std::string& message) {
  expect_error<UserError>([&] { Opened{bytes}; }, message);
}
void refuse_to_read(const ZipPart& part, const std::string& message) {
  const Opened opened(zip_bytes({part}));
  expect_error<UserError>([&] { opened.text(part.name); }, message);
}

const std::string kDamaged = "the zip archive is cut off, or its directory is damaged";

TEST(ZipFile, ReadsStoredAndDeflatedEntries) {
  const std::string many(100000, 'x');
  const Opened opened(
      zip_bytes({{"a/one", "1"}, {"a/many", many, true}, {"a/none", ""}, {"a/nothing", "", true}}));
  EXPECT_EQ(opened.zip.entries().size(), 4u);
  EXPECT_EQ(opened.text("a/one"), "1");
  EXPECT_EQ(opened.text("a/many"), many);
  EXPECT_EQ(opened.text("a/none"), "");
  EXPECT_EQ(opened.text("a/nothing"), "");
  EXPECT_EQ(opened.zip.find("a/two"), nullptr);
}

TEST(ZipFile, TellsWhereStoredBytesLie) {
  const Opened opened(zip_bytes({{"first", "abc"}, {"second", "defg"}}));
  const ZipFile::Entry& entry = *opened.zip.find("second");
  const auto bytes = opened.zip.file()->bytes().subspan(entry.offset, entry.packed_size);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "defg");
}

TEST(ZipFile, RefusesWhatIsNoArchive) {
  refuse("", "this is no zip archive: it has 0 bytes");
  refuse(std::string(1000, 'x'),
         "this is no zip archive, or it is cut off: the directory at its end is missing");
}

TEST(ZipFile, RefusesAnArchiveThatIsCutOffAnywhere) {
  const std::string whole = zip_bytes({{"a", "some content"}, {"b", "more content", true}});
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_THROW(Opened{whole.substr(0, size)}, UserError) << size;
}

TEST(ZipFile, RefusesADirectoryThatLeadsElsewhere) {
  std::string bytes = zip_bytes({{"a", "content"}});
  bytes[bytes.size() - 6] = 'z';  // where the directory begins
  refuse(bytes, kDamaged);
}

TEST(ZipFile, RefusesNamesThatLeadOutside) {
  for (const std::string& name : {"../a", "a/../../b", "/etc/passwd", "a/..", "..", "a\\b"})
    refuse(zip_bytes({{name, "x"}}),
           fmt::format("the entry \"{}\" of the zip archive has a name that leads outside it", name));
  EXPECT_NO_THROW(Opened(zip_bytes({{"a..b/...", "x"}})));
}

TEST(ZipFile, RefusesTwoEntriesOfOneName) {
  refuse(zip_bytes({{"a", "1"}, {"a", "2"}}), "two entries of the zip archive have the name \"a\"");
}

TEST(ZipFile, RefusesWhatItCannotUnpack) {
  expect_error<UnsupportedError>([] { Opened{zip_bytes({{.name = "a", .content = "1", .flags = 1}})}; },
                                 "the entry \"a\" of the zip archive is encrypted");
  expect_error<UnsupportedError>(
      [] { Opened{zip_bytes({{.name = "a", .content = "1", .method = 14}})}; },
      "the entry \"a\" of the zip archive is compressed by method 14, but must be stored or deflated");
}

TEST(ZipFile, RefusesSizesThatDoNotFit) {
  refuse(zip_bytes({{.name = "a", .content = "123", .size = 4}}),
         "the entry \"a\" of the zip archive is stored, but its two sizes are 4 and 3");
  const std::string content(1000, 'x');
  for (int64_t size : {0, 999, 1001, 100000})
    refuse_to_read(
        {.name = "a", .content = content, .deflated = true, .size = size},
        fmt::format("the entry \"a\" of the zip archive is damaged: it does not unpack to {} bytes", size));
}

TEST(ZipFile, RefusesBytesThatDoNotFitTheirChecksum) {
  for (bool deflated : {false, true})
    refuse_to_read({.name = "a", .content = "content", .deflated = deflated, .checksum = 1},
                   "the entry \"a\" of the zip archive is damaged: its checksum does not fit");
}

}  // namespace
}  // namespace tenon
