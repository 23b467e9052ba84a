#include "verify/kernel_checks.h"

#include <gtest/gtest.h>

#include "compile_here.h"
#include "ir/graph_text.h"
#include "loops/interpret.h"

namespace tenon {
namespace {

using loops::Kernel;
using loops::parse_kernel;

const Kernel kSum = parse_kernel(R"(kernel kernel(x0: f32[4,6]) -> (y0: f32[4]) {
  for i in 0..4 {
    y0[i] = 0
    for j in 0..6 {
      y0[i] += x0[i,j]
    }
  }
})");

// The same by twos, with the last of them left out.
const Kernel kSumOfFewer = parse_kernel(R"(kernel kernel(x0: f32[4,6]) -> (y0: f32[4]) {
  for i in 0..4 parallel {
    y0[i] = 0
    for j in 0..4 step 2 {
      y0[i] += x0[i,j] + x0[i,j + 1]
    }
  }
})");

const Kernel kSumByTwos = parse_kernel(R"(kernel kernel(x0: f32[4,6]) -> (y0: f32[4]) {
  for i in 0..4 parallel {
    y0[i] = 0
    for j in 0..6 step 2 {
      y0[i] += x0[i,j] + x0[i,j + 1]
    }
  }
})");

TEST(FindWrongKernel, FindsNothingWhereNothingIsWrong) {
  EXPECT_FALSE(find_wrong_kernel({kSum, kSum}, {kSum, kSumByTwos}, this_machine()));
}

TEST(FindWrongKernel, BlamesTheSchedule) {
  const std::optional<WrongKernel> wrong =
      find_wrong_kernel({kSum, kSum}, {kSumByTwos, kSumOfFewer}, this_machine());
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kernel, 1U);
  EXPECT_EQ(name(wrong->fault), "schedule");
  EXPECT_GT(wrong->error, 0.1);
  EXPECT_TRUE(wrong->detail.starts_with("y0: element ")) << wrong->detail;
}

// An index outside its buffer is where the interpreter ends.
TEST(FindWrongKernel, BlamesAScheduleThatCannotBeInterpreted) {
  Kernel outside = kSumByTwos;
  std::get<loops::Loop>(outside.body.front()).end = 5;
  const std::optional<WrongKernel> wrong = find_wrong_kernel({kSum}, {outside}, this_machine());
  ASSERT_TRUE(wrong);
  EXPECT_EQ(name(wrong->fault), "schedule");
}

TEST(FindWrongKernel, BlamesCodeGeneration) {
  const auto run_wrong = [](const Kernel&, const std::vector<Tensor>& inputs,
                            const std::map<std::string, int64_t>& sizes) {
    return std::optional(loops::interpret(kSumOfFewer, inputs, sizes));
  };
  const std::optional<WrongKernel> wrong =
      find_wrong_kernel({kSum}, {kSumByTwos}, this_machine(), {.run_code = run_wrong});
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kernel, 0U);
  EXPECT_EQ(name(wrong->fault), "code generation");
}

// Weights that were packed are read otherwise: nothing says which element is which.
TEST(FindWrongKernel, DoesNotCompareKernelsThatReadOtherBuffers) {
  const Kernel packed = parse_kernel(R"(kernel kernel(x0: f32[6,4]) -> (y0: f32[4]) {
    for i in 0..4 {
      y0[i] = 0
    }
  })");
  EXPECT_FALSE(find_wrong_kernel({kSum}, {packed}, this_machine()));
}

// Whatever the schedules of a model are on this machine, they compute what the nests do.
TEST(FindWrongKernel, FindsNothingInProgramsThatAreRight) {
  for (const std::string_view text :
       {"graph g(%a: f32[8,64]) { %0 = softmax(%a, axis=1) return %0 }",
        "graph g(%a: f32[17,33], %b: f32[33,40]) { %0 = matmul(%a, %b) %1 = tanh(%0) return %1 }",
        "graph g(%x: f32[1,4,9,9], %w: f32[8,4,3,3]) { %0 = conv(%x, %w) %1 = relu(%0) return %1 }",
        "graph g(%t: f32[10,4], %i: i64[3]) { %0 = gather(%t, %i) %1 = exp(%0) return %1 }"}) {
    const compiler::ExplainedProgram program = compile_explained(*parse_graph(text), here());
    const std::optional<WrongKernel> wrong =
        find_wrong_kernel(program.plain, program.kernels, this_machine());
    EXPECT_FALSE(wrong) << text << ": " << wrong->detail;
  }
}

}  // namespace
}  // namespace tenon
