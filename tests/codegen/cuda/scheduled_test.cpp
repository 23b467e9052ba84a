// The text of kernels that are scheduled for a GPU by name, run on the host, against the interpreter.
#include <gtest/gtest.h>

#include "codegen/cuda/run_on_host.h"
#include "sanitized.h"
#include "schedule/cuda/one_kernel.h"

namespace tenon::codegen::cuda {
namespace {

struct Case {
  std::string text;
  Sizes sizes = {};
  double tolerance = 1e-5;
  int multiprocessors = 132;

  loops::Kernel scheduled() const { return OneKernel(text, multiprocessors).scheduled(); }
};

const std::vector<Case>& all_cases() {
  static const std::vector<Case>& cases = *new std::vector<Case>{
      {"graph g(%x: f32[1,200], %w: f32[200,128]) { %0 = matmul(%x, %w) return %0 }"},
      {"graph g(%x: f32[5,64], %w: f32[64,72]) { %0 = matmul(%x, %w) %1 = tanh(%0) return %0, %1 }"},
      {"graph g(%x: f32[3,37], %w: f32[37,71]) { %0 = matmul(%x, %w) return %0 }"},
      {"graph g(%x: f32[2,k], %w: f32[k,n]) { %0 = matmul(%x, %w) return %0 }", {{"k", 70}, {"n", 9}}},
      {"graph g(%p: f32[4,1,40], %v: f32[4,40,16]) { %0 = matmul(%p, %v) return %0 }"},
      {"graph g(%x: f16[2,64], %w: f16[64,72]) { %0 = matmul(%x, %w) return %0 }", {}, 0.05},
      {R"(graph g(%x: f32[1,512], %w: f32[64,512]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         return %1
       })"},
      {R"(graph g(%x: f32[16,96], %w: f32[66,96], %b: f32[66]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         %2 = add(%1, %b)
         return %2
       })"},
      {R"(graph g(%x: bf16[4,64], %w: bf16[72,64]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         return %1
       })",
       {},
       0.1},
      {"graph g(%x: f32[1,40,8,9], %w: f32[40,1,3,3]) { %0 = conv(%x, %w, groups=40, pads=[1,1,1,1]) return "
       "%0 }",
       {},
       1e-5,
       1},
      {"graph g(%x: f32[2,24,17,9]) {"
       "%0, %i = max_pool(%x, kernel=[2,3], strides=[1,2], dilations=[1,1], pads=[0,1,0,1]) return %0 }",
       {},
       0,
       1},
  };
  return cases;
}

TEST(ScheduledOnHost, DoesWhatTheInterpreterDoes) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  HostKernels kernels;
  std::vector<size_t> numbers;
  for (const Case& each : all_cases())
    numbers.push_back(kernels.add(each.scheduled()));
  kernels.compile();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Case& each = all_cases()[i];
    SCOPED_TRACE(each.text);
    const loops::Kernel kernel = each.scheduled();
    const std::vector<Tensor> inputs = random_inputs(kernel, each.sizes),
                              expected = loops::interpret(kernel, inputs, each.sizes);
    for (const HostKernels::Order order : {HostKernels::Order::Ascending, HostKernels::Order::Descending}) {
      const HostKernels::Result result = kernels.run(numbers[i], inputs, each.sizes, order);
      ASSERT_FALSE(result.failed || result.is_deadlock) << emit_cuda(kernel).text;
      for (size_t output = 0; output < expected.size(); ++output) {
        const std::vector<double> ours = widen<double>(result.outputs[output]),
                                  theirs = widen<double>(expected[output]);
        ASSERT_EQ(ours.size(), theirs.size());
        for (size_t j = 0; j < ours.size(); ++j)
          ASSERT_NEAR(ours[j], theirs[j], each.tolerance) << emit_cuda(kernel).text;
      }
    }
  }
}

}  // namespace
}  // namespace tenon::codegen::cuda
