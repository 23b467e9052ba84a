#include "compiler/run_kernel.h"

#include <gtest/gtest.h>

#include "loops/interpret.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// What is written past the caches starts at no multiple of a register here, and ends at none.
TEST(RunCompiled, StreamsToAnyPlace) {
  Tensor x(DType::F32, {1000});
  for (int64_t i = 0; i < 1000; ++i)
    x.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 17);
  for (const int first : {0, 1, 3, 16}) {
    const loops::Kernel kernel = loops::parse_checked_kernel(
        fmt::format(R"(kernel k(x: f32[1000]) -> (y: f32[1016] streamed, s: f32[]) {{
  for i in 0..1016 {{
    y[i] = 0
  }}
  s[] = 0
  for i in 0..1000 vector {{
    y[i+{}] = x[i] * 2
    s[] += x[i]
  }}
}})",
                    first));
    const std::vector<Tensor> got = run_compiled(kernel, {x}, {}), wanted = loops::interpret(kernel, {x});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(widen<double>(got[i]), widen<double>(wanted[i])) << "output " << i << " from " << first;
  }
}

}  // namespace
}  // namespace tenon
