#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/compile.h"
#include "compiler/print_program.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {

using compiler::FusionReport;
using compiler::print_fusion;

namespace {

FusionReport fusion(std::string_view text) {
  register_ops();
  return fusion_of(*parse(text), without_cache());
}

// Where there is one, why.
std::string reason(const FusionReport& report) {
  return report.edges.empty() ? "" : report.edges.front().reason;
}

TEST(Fusion, MakesOneKernelOfSiblings) {
  const FusionReport report = fusion(R"(graph g(%x: f32[64,32]) {
    %0 = exp(%x)
    %1 = sigmoid(%x)
    return %0, %1
  })");
  ASSERT_EQ(report.after.size(), 1);
  EXPECT_EQ(report.before[0].bytes, Dim(2 * 64 * 32 * 4));
  EXPECT_EQ(report.after[0].cost.bytes, Dim(3 * 64 * 32 * 4));  // x is read once
}

TEST(Fusion, MakesOneKernelOfReductionsOfTheSameRows) {
  EXPECT_EQ(fusion(R"(graph g(%x: f32[64,32]) {
    %0 = reduce_max(%x, axes=[1])
    %1 = reduce_sum(%x, axes=[1])
    return %0, %1
  })")
                .after.size(),
            1);
}

TEST(Fusion, LeavesSiblingsWithOtherLoopsApart) {
  EXPECT_EQ(fusion(R"(graph g(%x: f32[64,32]) {
    %0 = exp(%x)
    %1 = transpose(%x, permutation=[1,0])
    %2 = exp(%1)
    return %0, %2
  })")
                .after.size(),
            2);
}

// %3 reads x as %0 does, but waits for what is made of %0.
TEST(Fusion, NeverWaitsForItself) {
  const FusionReport report = fusion(R"(graph g(%x: f32[64,64], %w: f32[64,64]) {
    %0 = exp(%x)
    %1 = matmul(%0, %w)
    %2 = exp(%1)
    %3 = matmul(%2, %w)
    %4 = mul(%3, %x)
    %5 = add(%4, %0)
    return %5
  })");
  EXPECT_EQ(report.after.size(), 3);
}

TEST(Fusion, ComputesAgainWhatIsCheap) {
  const auto kernels = [](std::string_view op) {
    return fusion(fmt::format(R"(graph g(%x: f32[64,64], %w: f32[64,64]) {{
      %0 = {}(%x)
      %1 = reduce_sum(%0, axes=[0])
      %2 = reduce_sum(%0, axes=[1])
      return %1, %2
    }})",
                              op))
        .after.size();
  };
  EXPECT_EQ(kernels("relu"), 2);
  EXPECT_EQ(kernels("erf"), 2);  // with its first reader, along rows; the other reads it from memory
}

// A sum that is read twice is better written once, by the product that makes it.
TEST(Fusion, KeepsWhatAProductCanFinish) {
  const FusionReport report = fusion(R"(graph g(%x: f32[64,64], %w: f32[64,64], %y: f32[64,64]) {
    %0 = matmul(%x, %w)
    %1 = add(%0, %y)
    %2 = matmul(%1, %w)
    %3 = add(%2, %1)
    return %3
  })");
  ASSERT_EQ(report.after.size(), 2);
  EXPECT_EQ(report.after[1].cost.bytes, Dim(3 * 64 * 64 * 4));  // the sum, w, and the result
}

TEST(Fusion, SaysWhatStandsInTheWay) {
  EXPECT_EQ(reason(fusion(R"(graph g(%x: f32[64,64], %w: f32[64,64]) {
    %0 = matmul(%x, %w)
    %1 = matmul(%0, %w)
    return %1
  })")),
            "both are reductions over different axes");
  EXPECT_EQ(reason(fusion(R"(graph g(%x: f32[64,32]) {
    %0 = erf(%x)
    %1 = reduce_sum(%0, axes=[0])
    return %0, %1
  })")),
            "it reduces across rows");
  EXPECT_EQ(reason(fusion(R"(graph g(%x: f32[16,262144]) {
    %0 = reduce_max(%x, axes=[1], keep_dims=true)
    %1 = sub(%x, %0)
    return %1
  })")),
            "a row takes 1024 KiB and would not stay in cache");
  EXPECT_EQ(reason(fusion(R"(graph g(%x: f32[2,40000]) {
    %0 = reduce_max(%x, axes=[1], keep_dims=true)
    %1 = sub(%x, %0)
    return %1
  })")),
            "too few rows to parallelise: 2");
}

TEST(Fusion, PrintsWhatItSaved) {
  EXPECT_EQ(print_fusion(fusion(R"(graph g(%x: f32[n,64], %w: f32[64,64]) {
    %0 = matmul(%x, %w)
    %1 = relu(%0)
    %2 = matmul(%1, %w)
    return %2
  })"),
                         {}, {{"n", 1000}}),
            R"(3 steps became 2 kernels
counted with n = 1000
  "matmul", "relu": 516.0 KiB, 8.19e+06 operations
  "matmul": 516.0 KiB, 8.19e+06 operations
not fused, by the time that it costs:
  12.80 µs: f32[n,64] from "matmul", "relu" to "matmul": both are reductions over different axes
moved: 1.5 MiB before, 1.0 MiB after
operations: 1.64e+07 before, 1.64e+07 after
operations per byte: 10.44 before, 15.50 after
)");
}

// Through a cache that holds it, a value goes faster than through memory.
TEST(Fusion, TimeLostIsThatOfTheLevelThatHoldsTheValue) {
  const FusionReport report = fusion(R"(graph g(%x: f32[n,64], %w: f32[64,64]) {
    %0 = matmul(%x, %w)
    %1 = matmul(%0, %w)
    return %1
  })");
  const auto lost = [&](int64_t n, int64_t level2) {
    Target target;
    target.caches.level2 = level2;
    const std::string text = print_fusion(report, target, {{"n", n}});
    return text.substr(0, text.find(" µs")).substr(text.find("costs:\n  ") + 9);
  };
  EXPECT_EQ(lost(1000, 256'000), "12.80");
  EXPECT_EQ(lost(1000, 255'999), "51.20");
  EXPECT_EQ(lost(10'000, 256'000), "512.00");
}

}  // namespace
}  // namespace tenon
