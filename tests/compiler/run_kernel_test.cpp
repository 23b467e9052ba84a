#include "compiler/run_kernel.h"

#include <gtest/gtest.h>

#include "codegen/llvm/jit.h"
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

// Beyond the end of a buffer, too, in lanes side by side, far apart, and one by one.
TEST(RunCompiled, FetchesFromAnyPlace) {
  Tensor x(DType::F32, {9, 37});
  for (int64_t i = 0; i < 9 * 37; ++i)
    x.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 17);
  const loops::Kernel kernel = loops::parse_checked_kernel(R"(kernel k(x: f32[9,37]) -> (y: f32[9,37]) {
  for i in 0..9 parallel {
    for j in 0..37 vector {
      y[i,j] = x[i,j] * 2
      fetch x[i+1,j]
      fetch x[j,i]
      fetch x[mod(j,5),floor(j/5)]
      fetch x[i+1000000000,0]
    }
    fetch x[i+1,0]
  }
})");
  EXPECT_EQ(widen<double>(run_compiled(kernel, {x}, {}).front()),
            widen<double>(loops::interpret(kernel, {x}).front()));
}

// In lanes of any number, added to sums and by themselves, and one by one.
TEST(RunCompiled, MultipliesBytes) {
  Tensor a(DType::I32, {75}), b(DType::I32, {75});
  uint64_t seed = 1;
  for (Tensor* tensor : {&a, &b})
    for (int32_t& word : tensor->mutable_data<int32_t>()) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      word = static_cast<int32_t>(seed >> 32);
    }
  for (const char* lanes : {"32", "16", "8", "4", "75"}) {
    const loops::Kernel kernel = loops::parse_checked_kernel(
        fmt::format(R"(kernel k(a: i32[75], b: i32[75]) -> (y: i32[75], s: i32[]) {{
  s[] = 5
  for i in 0..{} vector {{
    y[i] = dot_bytes(a[i], b[i]) - 1
    y[i] += dot_bytes(a[0], b[i])
  }}
  for i in {}..75 {{
    y[i] = dot_bytes(a[i], b[74-i])
    s[] += dot_bytes(b[i], a[i])
  }}
}})",
                    lanes, lanes));
    const std::vector<Tensor> got = run_compiled(kernel, {a, b}, {}),
                              wanted = loops::interpret(kernel, {a, b});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(widen<double>(got[i]), widen<double>(wanted[i]))
          << "output " << i << ", " << lanes << " lanes";
  }
}

// Threads share the turns of nested loops, and may begin and end within a run of the innermost.
TEST(RunCompiled, TakesTurnsFromAnywhereToAnywhere) {
  const loops::Kernel kernel = loops::parse_checked_kernel(R"(kernel k() -> (y: i64[2,3,n]) {
  for i in 0..2 parallel {
    for j in 0..3 parallel {
      for k in 0..n parallel {
        y[i,j,k] = 6 * k + 2 * j + i + 1
      }
    }
  }
})");
  codegen::Jit jit;
  const KernelFunction function = jit.load(codegen::generate_object(kernel, this_machine()), 1).front();
  for (int64_t n : {0, 1, 4})
    for (int64_t begin = 0; begin <= 6 * n; ++begin)
      for (int64_t end = begin; end <= 6 * n; ++end) {
        std::vector<int64_t> got(static_cast<size_t>(6 * n)), wanted = got;
        for (int64_t turn = begin; turn < end; ++turn)
          wanted[static_cast<size_t>(turn)] = 6 * (turn % n) + 2 * (turn / n % 3) + turn / n / 3 + 1;
        std::byte* const buffer = reinterpret_cast<std::byte*>(got.data());
        EXPECT_EQ(function(&buffer, &n, nullptr, begin, end), 0);
        EXPECT_EQ(got, wanted) << "turns " << begin << " to " << end << " of " << 6 * n;
      }
}

// Its memory is taken once, though its statements are there four times.
TEST(RunCompiled, UsesScratchMemoryAgainInEveryTurn) {
  const loops::Kernel kernel = loops::parse_checked_kernel(R"(kernel k(x: f32[4,n]) -> (y: f32[4]) {
  for j in 0..4 unrolled {
    local t: f32[n]
    for m in 0..n vector {
      t[m] = x[j,m] * 2
    }
    y[j] = 0
    for m in 0..n {
      y[j] += t[m]
    }
  }
})");
  Tensor x(DType::F32, {4, 5000});
  for (float& value : x.mutable_data<float>())
    value = 1;
  EXPECT_EQ(widen<double>(run_compiled(kernel, {x}, {{"n", 5000}}).front()),
            (std::vector<double>{10000, 10000, 10000, 10000}));
}

}  // namespace
}  // namespace tenon
