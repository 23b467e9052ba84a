#include "base/scratch_folder.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tenon {
namespace {

TEST(ScratchFolder, IsThereForAsLongAsItIsNeeded) {
  std::filesystem::path path;
  {
    const ScratchFolder one, other;
    path = one.path();
    EXPECT_NE(path, other.path());
    std::ofstream(path / "file") << "content";
    EXPECT_TRUE(std::filesystem::exists(path / "file"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace tenon
