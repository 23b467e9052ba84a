#include "codegen/object_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/child_process.h"
#include "base/scratch_folder.h"
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

// Those that were used longest ago; what was found was used, too.
TEST_F(ObjectCacheTest, KeepsNoMoreThanItMay) {
  const ObjectCache cache(folder_.path() / "cache", 4000);
  const std::string object(1000, 'x');
  const auto grow_older = [&] {
    for (const fs::directory_entry& file : fs::directory_iterator(folder_.path() / "cache"))
      fs::last_write_time(file.path(), file.last_write_time() - std::chrono::hours(1));
  };
  for (const char* key : {"a", "b", "c"}) {
    cache.store(key, object);
    grow_older();
  }
  EXPECT_EQ(cache.find("a"), object);
  cache.store("d", object);
  EXPECT_EQ(cache.find("a"), object);
  EXPECT_EQ(cache.find("b"), std::nullopt);
  EXPECT_EQ(cache.find("c"), object);
  EXPECT_EQ(cache.find("d"), object);
}

TEST_F(ObjectCacheTest, RemovesWhatWasLeftUnfinishedAndNothingOfOthers) {
  const fs::path folder = folder_.path() / "cache";
  fs::create_directories(folder / "0123456789abcde0.kernel");
  const auto write_old = [&](const char* name) {
    std::ofstream(folder / name) << std::string(5000, 'x');
    fs::last_write_time(folder / name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  for (const char* name : {"0123456789abcdef.kernel.7.partial", "notes.txt", "my.kernel",
                           "0123456789abcdef.txt", "x0123456789abcde.kernel"})
    write_old(name);
  const ObjectCache cache(folder, 4000);
  cache.store("key", std::string(1000, 'x'));
  EXPECT_FALSE(fs::exists(folder / "0123456789abcdef.kernel.7.partial"));
  for (const char* name : {"notes.txt", "my.kernel", "0123456789abcdef.txt", "x0123456789abcde.kernel",
                           "0123456789abcde0.kernel"})
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_NE(cache.find("key"), std::nullopt);
}

// What one finds is whole, though others store and remove it all the time.
TEST_F(ObjectCacheTest, IsTrimmedWhileOthersUseIt) {
  const ObjectCache cache(folder_.path() / "cache", 20000);
  const auto object_of = [](int key) {
    return std::string(1000 + static_cast<size_t>(key), static_cast<char>('a' + key));
  };
  std::atomic<int> damaged = 0;
  const auto use = [&](int first) {
    for (int i = 0; i < 300; ++i) {
      const int key = (first + 7 * i) % 26;
      if (const std::optional<std::string> object = cache.find(std::to_string(key)))
        damaged += *object != object_of(key);
      else
        cache.store(std::to_string(key), object_of(key));
    }
  };
  std::vector<std::thread> threads;
  for (int first = 0; first < 4; ++first)
    threads.emplace_back(use, first);
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(damaged, 0);
  uintmax_t bytes = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_.path() / "cache"))
    bytes += file.file_size();
  EXPECT_LE(bytes, 20000U);
  EXPECT_GT(bytes, 0U);
}

TEST_F(ObjectCacheTest, DoesNotMindAFolderThatCannotBe) {
  std::ofstream(folder_.path() / "file") << "no folder";
  const ObjectCache cache(folder_.path() / "file" / "cache");
  cache.store("key", "code");
  EXPECT_EQ(cache.find("key"), std::nullopt);
}

TEST_F(ObjectCacheTest, DoesNotBringBackAFolderThatASignalRemoved) {
  const ChildEnd end = run_in_child(60, [&] {
    ::setenv("TMPDIR", folder_.path().c_str(), 1);
    const ScratchFolder folders[2];  // the signal removes the first, and then is busy with the second
    for (int i = 0; i < 5000; ++i)
      std::ofstream(folders[1].path() / std::to_string(i));
    ::kill(::getpid(), SIGINT);
    while (fs::exists(folders[0].path())) {
    }
    ObjectCache(folders[0].path()).store("key", "code");
    return "stored";
  });
  EXPECT_EQ(end.failure, "it crashed with signal 2");
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(ObjectCacheTest, SaysWhatItHolds) {
  EXPECT_EQ(cache_.usage().objects, 0U);  // also where there is no folder yet
  cache_.store("key", "code");
  cache_.store("another", "more");
  EXPECT_EQ(cache_.usage().objects, 2U);
  EXPECT_EQ(cache_.usage().bytes, 2 * 16 + strlen("key") + strlen("another") + 2 * 4);
}

TEST_F(ObjectCacheTest, ClearsWhatIsItsOwn) {
  cache_.store("key", "code");
  const fs::path file = only_file(), folder = folder_.path() / "cache";
  fs::rename(file, file.string() + ".123");  // what a process that was killed had begun to write
  cache_.store("key", "code");
  const char* others[] = {"notes.txt", "0123456789abcdef", "0123456789abcdef.o", "x123456789abcdef.kernel"};
  for (const char* name : others)
    std::ofstream(folder / name) << "kept";
  fs::create_directory(folder / "0123456789abcdef.kernel");
  EXPECT_EQ(cache_.clear().objects, 2U);
  EXPECT_EQ(cache_.find("key"), std::nullopt);
  EXPECT_FALSE(fs::exists(file));
  for (const char* name : others)
    EXPECT_TRUE(fs::exists(folder / name)) << name;
  EXPECT_TRUE(fs::exists(folder / "0123456789abcdef.kernel"));
  EXPECT_EQ(cache_.clear().objects, 0U);
}

}  // namespace
}  // namespace tenon::codegen
