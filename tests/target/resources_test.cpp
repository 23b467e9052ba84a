#include "target/resources.h"

#include <gtest/gtest.h>
#include <sched.h>

#include "base/temporary_folder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << content << '\n';
}

void write_cache(const fs::path& cache, const std::string& level, const std::string& type,
                 const std::string& size, const std::string& shared) {
  write(cache / "level", level);
  write(cache / "type", type);
  write(cache / "size", size);
  write(cache / "shared_cpu_list", shared);
}

TEST(Caches, AreThoseOfDataAndOfEachCoreItsShare) {
  const TemporaryFolder folder;
  write_cache(folder / "cache/index0", "1", "Data", "48K", "0");
  write_cache(folder / "cache/index1", "1", "Instruction", "32K", "0");
  write_cache(folder / "cache/index2", "2", "Unified", "2048K", "0");
  write_cache(folder / "cache/index3", "3", "Unified", "12M", "0-3,8,9");
  EXPECT_EQ(read_caches(folder.path(), {}), (Caches{48 << 10, 2 << 20, 2 << 20}));
}

TEST(Caches, ThatAreNotNamedAreAsSaidOtherwise) {
  const TemporaryFolder folder;
  const Caches otherwise = {1, 2, 3};
  EXPECT_EQ(read_caches(folder.path(), otherwise), otherwise);
  write_cache(folder / "cache/index0", "1", "Data", "64K", "0");
  write_cache(folder / "cache/index1", "2", "Unified", "many", "0");
  EXPECT_EQ(read_caches(folder.path(), otherwise), (Caches{64 << 10, 2, 3}));
}

TEST(Caches, ShareOfTheThirdLevelIsNeverAWholeHosts) {
  const TemporaryFolder folder;
  write_cache(folder / "cache/index0", "3", "Unified", "307200K", "0-1");
  EXPECT_EQ(read_caches(folder.path(), {}).level3_share, 32 << 20);
}

TEST(Caches, ThatTheLibraryKnowsAreSizes) {
  EXPECT_GT(library_caches().level1_data, 0);
  EXPECT_GE(library_caches().level2, library_caches().level1_data);
}

TEST(CountProcessors, TakesRangesAndNeverGivesNone) {
  EXPECT_EQ(count_processors("0"), 1);
  EXPECT_EQ(count_processors("5,7"), 2);
  EXPECT_EQ(count_processors("0-3,8,10-11"), 7);
  EXPECT_EQ(count_processors(""), 1);
  EXPECT_EQ(count_processors("none"), 1);
  EXPECT_EQ(count_processors("3-1"), 1);
}

TEST(CoreLimit, OfVersion2IsTheLowestOnTheWayUpRoundedUp) {
  const TemporaryFolder root;
  const std::string memberships = "0::/user/job\n";
  EXPECT_EQ(read_core_limit(root.path(), memberships), std::nullopt);
  write(root / "user/job/cpu.max", "max 100000");
  EXPECT_EQ(read_core_limit(root.path(), memberships), std::nullopt);
  write(root / "user/cpu.max", "250000 100000");
  EXPECT_EQ(read_core_limit(root.path(), memberships), 3);
  write(root / "user/job/cpu.max", "400000 100000");
  EXPECT_EQ(read_core_limit(root.path(), memberships), 3);
  write(root / "user/job/cpu.max", "1000 50000");
  EXPECT_EQ(read_core_limit(root.path(), memberships), 1);
  write(root / "user/other/cpu.max", "200000 100000");
  EXPECT_EQ(read_core_limit(root.path(), "0::/user/other"), 2);
}

TEST(CoreLimit, OfVersion1IsThatOfTheProcessorController) {
  const TemporaryFolder root;
  const std::string memberships = "4:memory:/m\n3:cpuset:/s\n2:cpu,cpuacct:/c\n0::/\n";
  write(root / "cpu/c/cpu.cfs_quota_us", "-1");
  write(root / "cpu/c/cpu.cfs_period_us", "100000");
  write(root / "cpu/s/cpu.cfs_quota_us", "100000");  // of groups that this process is not in
  write(root / "cpu/s/cpu.cfs_period_us", "100000");
  EXPECT_EQ(read_core_limit(root.path(), memberships), std::nullopt);
  write(root / "cpu/c/cpu.cfs_quota_us", "200001");
  EXPECT_EQ(read_core_limit(root.path(), memberships), 3);
}

TEST(CoreLimit, IsSeenFromWithinAContainer) {
  const TemporaryFolder root;  // the groups are named from outside, but mounted from the container's own on
  write(root / "cpu.max", "200000 100000");
  EXPECT_EQ(read_core_limit(root.path(), "0::/docker/0123abcd\n"), 2);
}

TEST(CoreLimit, IsNoneWhereTheTextIsNonsense) {
  const TemporaryFolder root;
  write(root / "cpu.max", "0 0");
  EXPECT_EQ(read_core_limit(root.path(), ""), std::nullopt);
  EXPECT_EQ(read_core_limit(root.path(), "\n:\n::\n"), std::nullopt);
}

TEST(AllowedProcessors, FollowTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const std::vector<int> all = allowed_processors();
  EXPECT_EQ(std::ssize(all), CPU_COUNT(&before));
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(all.back()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(allowed_processors(), std::vector<int>{all.back()});
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace tenon
