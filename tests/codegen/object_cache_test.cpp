#include "codegen/object_cache.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/temporary_folder.h"

namespace tenon::codegen {
namespace {

namespace fs = std::filesystem;

class ObjectCacheTest : public testing::Test {
 protected:
  fs::path only_file() const { return fs::directory_iterator(folder_.path() / "cache")->path(); }

  TemporaryFolder folder_;
  ObjectCache cache_{folder_.path() / "cache"};
};

TEST_F(ObjectCacheTest, KeepsWhatWasStored) {
  EXPECT_EQ(cache_.find("key"), std::nullopt);
  cache_.store("key", std::string("code\0code", 9));
  EXPECT_EQ(cache_.find("key"), std::string("code\0code", 9));
  EXPECT_EQ(cache_.find("another"), std::nullopt);
}

TEST_F(ObjectCacheTest, IgnoresFilesThatAreDamaged) {
  cache_.store("key", "code");
  const auto size = fs::file_size(only_file());
  for (uintmax_t length = 0; length < size; ++length) {
    cache_.store("key", "code");
    fs::resize_file(only_file(), length);
    EXPECT_EQ(cache_.find("key"), std::nullopt) << length;
  }
  for (uintmax_t at = 0; at < size; ++at) {
    cache_.store("key", "code");
    std::fstream file(only_file(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char before = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(before ^ 0x10));
    file.close();
    EXPECT_EQ(cache_.find("key"), std::nullopt) << at;
  }
}

TEST_F(ObjectCacheTest, IgnoresAFolderWhereAFileShouldBe) {
  cache_.store("key", "code");
  const fs::path file = only_file();
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_EQ(cache_.find("key"), std::nullopt);
  cache_.store("key", "code");
}

TEST_F(ObjectCacheTest, DoesNotMindAFolderThatCannotBe) {
  std::ofstream(folder_.path() / "file") << "no folder";
  const ObjectCache cache(folder_.path() / "file" / "cache");
  cache.store("key", "code");
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

}  // namespace
}  // namespace tenon::codegen
