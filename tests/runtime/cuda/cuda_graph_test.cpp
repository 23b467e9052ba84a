#include "runtime/cuda/cuda_graph.h"

#include <gtest/gtest.h>

#include "runtime/cuda/add_kernel.h"

namespace tenon::runtime::cuda {
namespace {

using Dependences = std::vector<std::vector<size_t>>;

GraphLaunch reads_and_writes(std::vector<MemoryRange> reads, std::vector<MemoryRange> writes) {
  return {.function = nullptr,
          .blocks = 1,
          .threads = 128,
          .shared_bytes = 0,
          .arguments = {},
          .reads = std::move(reads),
          .writes = std::move(writes)};
}

constexpr MemoryRange kA = {0, 16}, kB = {16, 16}, kC = {32, 16}, kD = {48, 16};

TEST(FindDependences, OrdersWritingBeforeReading) {
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {kB}), reads_and_writes({kB}, {kC})}),
            (Dependences{{}, {0}}));
}

TEST(FindDependences, OrdersReadingBeforeWriting) {
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {kB}), reads_and_writes({kC}, {kA})}),
            (Dependences{{}, {0}}));
}

TEST(FindDependences, OrdersWritingTheSame) {
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {kB}), reads_and_writes({kC}, {kB})}),
            (Dependences{{}, {0}}));
}

TEST(FindDependences, LeavesTheRestOpen) {
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {kB}), reads_and_writes({kA}, {kC}),
                                         reads_and_writes({kB, kC}, {kD})}),
            (Dependences{{}, {}, {1, 0}}));
}

// Memory that is used again for something else overlaps without being the same.
TEST(FindDependences, LooksAtTheBytes) {
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {{32, 32}}), reads_and_writes({kA}, {kD})}),
            (Dependences{{}, {0}}));
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {{32, 0}}), reads_and_writes({kA}, {kC})}),
            (Dependences{{}, {}}));
}

TEST(FindDependences, LeavesOutWhatFollows) {
  EXPECT_EQ(find_dependences(std::vector{reads_and_writes({kA}, {kB}), reads_and_writes({kB}, {kC}),
                                         reads_and_writes({kB, kC}, {kD})}),
            (Dependences{{}, {0}, {1}}));
}

// A graph of sums of three elements, on memory of its own.
class CudaGraphTest : public ::testing::Test {
 protected:
  static constexpr int64_t kBytes = 3 * sizeof(float);

  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty())
      GTEST_SKIP() << why;
    context_ = primary_context(0);
    const CurrentContext current(*context_);
    CUmodule module = nullptr;
    context_->check(driver().cuModuleLoadData(&module, kAdd), "load a kernel");
    module_ = {context_, module};
    context_->check(driver().cuModuleGetFunction(&add_, module, "phase_0"), "find a function");
    stream_ = make_stream(context_);
  }

  void TearDown() override {
    for (const CUdeviceptr memory : memory_)
      context_->free([&](const Driver& driver) { driver.cuMemFree(memory); });
  }

  CUdeviceptr make(const std::vector<float>& values) {
    const CurrentContext current(*context_);
    CUdeviceptr memory = 0;
    context_->check(driver().cuMemAlloc(&memory, kBytes), "allocate");
    memory_.push_back(memory);
    context_->check(driver().cuMemcpyHtoDAsync(memory, values.data(), kBytes, stream_.get()), "upload");
    context_->check(driver().cuStreamSynchronize(stream_.get()), "upload");
    return memory;
  }

  std::vector<float> read(CUdeviceptr memory) {
    const CurrentContext current(*context_);
    std::vector<float> values(3);
    context_->check(driver().cuMemcpyDtoHAsync(values.data(), memory, kBytes, stream_.get()), "download");
    context_->check(driver().cuStreamSynchronize(stream_.get()), "download");
    return values;
  }

  GraphLaunch add(CUdeviceptr x, CUdeviceptr y, CUdeviceptr sum) const {
    return {.function = add_,
            .blocks = 1,
            .threads = 128,
            .shared_bytes = 0,
            .arguments = {x, y, sum, 3, 0, 1},
            .reads = {{x, kBytes}, {y, kBytes}},
            .writes = {{sum, kBytes}}};
  }

  std::shared_ptr<const Context> context_;
  Module module_;
  Stream stream_;
  CUfunction add_ = nullptr;
  std::vector<CUdeviceptr> memory_;
};

TEST_F(CudaGraphTest, RunsInTheOrderOfTheData) {
  const CUdeviceptr x = make({1, 2, 3}), twice = make({0, 0, 0}), thrice = make({0, 0, 0}),
                    six = make({0, 0, 0});
  CudaGraph graph(context_, {add(x, x, twice), add(twice, x, thrice), add(thrice, thrice, six)});
  graph.launch(stream_.get());
  EXPECT_EQ(read(six), (std::vector<float>{6, 12, 18}));
}

TEST_F(CudaGraphTest, RunsOnWithOtherArguments) {
  const CUdeviceptr x = make({1, 2, 3}), other = make({10, 20, 30}), twice = make({0, 0, 0}),
                    sum = make({0, 0, 0}), other_sum = make({0, 0, 0});
  CudaGraph graph(context_, {add(x, x, twice), add(twice, x, sum)});
  graph.launch(stream_.get());
  graph.set_argument(0, 0, other);
  graph.set_argument(1, 2, other_sum);
  graph.launch(stream_.get());
  EXPECT_EQ(read(sum), (std::vector<float>{3, 6, 9}));
  EXPECT_EQ(read(other_sum), (std::vector<float>{12, 24, 36}));
}

}  // namespace
}  // namespace tenon::runtime::cuda
