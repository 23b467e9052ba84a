#include "runtime/cuda/virtual_memory.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "runtime/cuda/add_kernel.h"
#include "runtime/cuda/cuda_device.h"

namespace tenon::runtime {
namespace {

class CudaVirtualMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty())
      GTEST_SKIP() << why;
    if (!cuda::has_virtual_memory(*cuda::primary_context(0)))
      GTEST_SKIP() << "cuda:0 has no virtual memory";
  }
};

TEST_F(CudaVirtualMemory, GrowsInPlace) {
  const std::shared_ptr<Device> device = make_cuda_device(0);
  DeviceMemory& memory = *device->own_memory();
  const std::unique_ptr<Workspace> workspace = device->make_workspace();
  const std::unique_ptr<GrowingMemory> growing = memory.make_growing();
  std::byte* const begin = growing->reserve(0);
  const int number = 42;
  memory.upload(begin, reinterpret_cast<const std::byte*>(&number), sizeof number, *workspace);
  for (const int64_t bytes : {int64_t{1}, int64_t{3} << 20, int64_t{1} << 20, int64_t{200} << 20}) {
    ASSERT_EQ(growing->reserve(bytes), begin) << bytes;
    memory.copy(begin + std::max<int64_t>(bytes - 4, 4) / 4 * 4, begin, sizeof number, *workspace);
    int found = 0;
    memory.download(reinterpret_cast<std::byte*>(&found), begin + std::max<int64_t>(bytes - 4, 4) / 4 * 4,
                    sizeof found, *workspace);
    EXPECT_EQ(found, number) << bytes;
  }
}

TEST_F(CudaVirtualMemory, SaysHowMuchIsMissing) {
  cuda::VirtualMemory memory(cuda::primary_context(0));
  try {
    memory.reserve(int64_t{1} << 50);
    FAIL() << "there was memory";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("the model needs 1048576.0 GiB of memory on cuda:0, which has "))
        << message;
  }
  EXPECT_NE(memory.reserve(1), nullptr);
}

}  // namespace
}  // namespace tenon::runtime
