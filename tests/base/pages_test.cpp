#include "base/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/mapped_file.h"
#include "base/temporary_folder.h"

namespace tenon {
namespace {

TEST(Pages, OfAMappedFileAreReleasedAndReadAgain) {
  const TemporaryFolder folder;
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const std::string content(8 * page, 'x');
  const auto file = MappedFile::open(folder.write("a", content));
  const std::span<const std::byte> bytes = file->bytes(), inside = bytes.subspan(1, 6 * page);
  const auto is_x = [](std::byte byte) { return byte == std::byte{'x'}; };
  EXPECT_TRUE(std::ranges::all_of(bytes, is_x));
  release_pages(inside);
  EXPECT_TRUE(std::ranges::all_of(bytes, is_x));
  release_pages(inside.first(0));
  release_pages(inside.first(page / 2));
}

}  // namespace
}  // namespace tenon
