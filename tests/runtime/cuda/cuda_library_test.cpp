#include "runtime/cuda/cuda_library.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace tenon::runtime::cuda {
namespace {

class CudaLibrary : public ::testing::Test {
 protected:
  std::string make(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
    return (folder_ / name).string();
  }

  LibrarySearch search() const {
    return search_cuda({"libnvrtc.so.13"}, [this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    });
  }

  // Without those of this machine's toolkits.
  std::vector<std::string> last_folders() const {
    std::vector<std::string> own;
    for (const std::filesystem::path& folder : search().then)
      if (folder.string().starts_with(folder_.path().string()))
        own.push_back(folder.string());
    return own;
  }

  TemporaryFolder folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(CudaLibrary, IsLookedForFirstWhereTheUserSays) {
  EXPECT_EQ(search().first, std::vector<std::filesystem::path>());
  variables_["TENON_CUDA_PATH"] = "/mine";
  EXPECT_EQ(search().names, std::vector<std::string>{"libnvrtc.so.13"});
  EXPECT_EQ(search().first, (std::vector<std::filesystem::path>{"/mine", "/mine/lib64", "/mine/lib"}));
}

TEST_F(CudaLibrary, IsLookedForInToolkits) {
  const std::string lib = make("toolkit/lib"), lib64 = make("other/lib64");
  variables_["CUDA_HOME"] = (folder_ / "toolkit").string();
  variables_["CUDA_PATH"] = (folder_ / "other").string();
  EXPECT_EQ(last_folders(), (std::vector{lib64, lib}));
}

TEST_F(CudaLibrary, IsLookedForInPackagesOfPython) {
  const std::string virtual_environment = make("env/lib/python3.11/site-packages/nvidia/cu13/lib");
  const std::string newer = make("python/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib");
  const std::string older = make("python/lib/python3.11/site-packages/nvidia/cu13/lib");
  const std::string of_the_user = make("home/.local/lib/python3.11/site-packages/nvidia/cu13/lib");
  make("python/bin");
  folder_.write("python/bin/python3", "");
  variables_["VIRTUAL_ENV"] = (folder_ / "env").string();
  variables_["PATH"] = "/none::" + (folder_ / "python/bin").string();
  variables_["HOME"] = (folder_ / "home").string();
  EXPECT_EQ(last_folders(), (std::vector{virtual_environment, newer, older, of_the_user}));
}

}  // namespace
}  // namespace tenon::runtime::cuda
