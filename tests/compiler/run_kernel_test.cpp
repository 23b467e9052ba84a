#include "codegen/run_kernel.h"

#include <gtest/gtest.h>

#include "codegen/generate.h"
#include "loops/interpret.h"
#include "tensor/wide.h"

namespace tenon {

using codegen::run_compiled;
using runtime::KernelFunction;

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
    const std::vector<Tensor> got = run_compiled(kernel, {x}, {}, this_machine()),
                              wanted = loops::interpret(kernel, {x});
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
      prefetch x[i+1,j]
      prefetch x[j,i]
      prefetch x[mod(j,5),floor(j/5)]
      prefetch x[i+1000000000,0]
    }
    prefetch x[i+1,0]
  }
})");
  EXPECT_EQ(widen<double>(run_compiled(kernel, {x}, {}, this_machine()).front()),
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
    y[i] = dot_i8x4(a[i], b[i]) - 1
    y[i] += dot_i8x4(a[0], b[i])
  }}
  for i in {}..75 {{
    y[i] = dot_i8x4(a[i], b[74-i])
    s[] += dot_i8x4(b[i], a[i])
  }}
}})",
                    lanes, lanes));
    const std::vector<Tensor> got = run_compiled(kernel, {a, b}, {}, this_machine()),
                              wanted = loops::interpret(kernel, {a, b});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(widen<double>(got[i]), widen<double>(wanted[i]))
          << "output " << i << ", " << lanes << " lanes";
  }
}

// In lanes of any number, and one by one.
TEST(RunCompiled, DrawsByCounter) {
  const Tensor key =
      narrow<uint64_t>(DType::U64, {2}, std::array<uint64_t, 2>{0x123456789abcdef0, 0xfedcba9876543210});
  for (const char* lanes : {"32", "16", "8", "4", "75"}) {
    const loops::Kernel kernel = loops::parse_checked_kernel(
        fmt::format(R"(kernel k(key: u64[2]) -> (low: u64[75], high: u64[75], y: f32[75]) {{
  for i in 0..{} vector {{
    low[i] = philox(key[0], key[1], u64(i))
    high[i] = philox_high(key[0], key[1], u64(i * 300000000))
    y[i] = f32(i32(shift_right(philox(key[0], key[1], u64(i)), 40))) * 5.9604644775390625e-08
  }}
  for i in {}..75 {{
    low[i] = philox(key[0], key[1], u64(i))
    high[i] = philox_high(key[1], key[0], u64(i))
    y[i] = 0
  }}
}})",
                    lanes, lanes));
    const std::vector<Tensor> got = run_compiled(kernel, {key}, {}, this_machine()),
                              wanted = loops::interpret(kernel, {key});
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_TRUE(identical(got[i], wanted[i])) << "output " << i << ", " << lanes << " lanes";
  }
}

// Pairs of bf16 whose products are small integers, so that sums are exact in any order.
Tensor pairs_of_integers(const Extents& extents, uint64_t seed) {
  Extents halves = extents;
  halves.back() *= 2;
  std::vector<double> numbers(static_cast<size_t>(element_count(halves)));
  for (double& number : numbers) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    number = static_cast<double>(seed >> 60) - 8;
  }
  const Tensor numbers_of_16_bits = narrow<double>(DType::BF16, halves, numbers);
  Tensor words(DType::I32, extents);
  std::ranges::copy(numbers_of_16_bits.bytes(), words.mutable_bytes().begin());
  return words;
}

void expect_interpreted(const std::string& text, const std::vector<Tensor>& inputs) {
  SCOPED_TRACE(text);
  const loops::Kernel kernel = loops::parse_checked_kernel(text);
  EXPECT_EQ(loops::print(kernel), text + "\n");
  const std::vector<Tensor> got = run_compiled(kernel, inputs, {}, this_machine()),
                            wanted = loops::interpret(kernel, inputs);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_EQ(widen<double>(got[i]), widen<double>(wanted[i])) << "output " << i;
}

TEST(RunCompiled, MultipliesBf16Pairs) {
  for (const char* lanes : {"32", "16", "8", "4", "75"})
    expect_interpreted(fmt::format(R"(kernel k(a: i32[75], b: i32[75]) -> (y: f32[75], s: f32[]) {{
  s[] = 5
  for i in 0..{0} vector {{
    y[i] = dot_bf16x2(a[i], b[i]) - 1
    y[i] += dot_bf16x2(a[0], b[i])
  }}
  for i in {0}..75 {{
    y[i] = dot_bf16x2(a[i], b[74-i])
    s[] += dot_bf16x2(b[i], a[i])
  }}
}})",
                                   lanes),
                       {pairs_of_integers({75}, 1), pairs_of_integers({75}, 2)});
}

// Those that fit, in one part and in several, and those that look like them.
TEST(RunCompiled, MultipliesTilesOfMatrices) {
  const auto expect_nest = [](int64_t rows, int64_t parts, int64_t summed, int64_t lanes,
                              std::string_view product, std::string_view dtype) {
    expect_interpreted(fmt::format(
                           R"(kernel k(a: i32[40,3,96], b: i32[3,96,40]) -> (y: {5}[40,40]) {{
  for i in 0..40 {{
    for j in 0..40 {{
      y[i,j] = 7
    }}
  }}
  for i in 0..{0} tile {{
    for p in 0..{1} {{
      for k in 0..{2} {{
        for j in 0..{3} vector {{
          y[i+5,j+3] += {4}
        }}
      }}
    }}
  }}
}})",
                           rows, parts, summed, lanes, product, dtype),
                       {pairs_of_integers({40, 3, 96}, 1), pairs_of_integers({3, 96, 40}, 2)});
  };
  const std::string_view pairs = "dot_bf16x2(a[i,p,k], b[p,k,j])";
  expect_nest(32, 1, 16, 32, pairs, "f32");
  expect_nest(16, 3, 96, 16, pairs, "f32");
  expect_nest(32, 2, 64, 16, pairs, "f32");
  expect_nest(16, 2, 32, 32, "dot_i8x4(a[i,p,k], b[p,k,j])", "i32");
  expect_nest(10, 2, 6, 8, pairs, "f32");
  expect_nest(2, 1, 2, 4, "dot_i8x4(a[i,p,k], b[p,k,j])", "i32");
  expect_nest(6, 3, 10, 12, "dot_i8x4(a[i,p,k], b[p,k,j])", "i32");
  expect_nest(17, 2, 32, 32, pairs, "f32");
  expect_nest(4, 2, 6, 6, pairs, "f32");
  expect_nest(32, 2, 33, 32, pairs, "f32");
  expect_nest(16, 2, 16, 24, pairs, "f32");
  expect_nest(16, 2, 16, 16, "dot_bf16x2(b[p,k,j], a[i,p,k])", "f32");
  expect_nest(16, 2, 16, 16, "dot_bf16x2(a[j,p,k], b[p,k,i])", "f32");
  expect_nest(16, 2, 16, 16, "dot_bf16x2(a[i,p,2*k], b[p,k,j])", "f32");
  expect_nest(16, 2, 16, 16, "dot_bf16x2(a[floor(i/2),p,k], b[p,k,j])", "f32");
  expect_nest(16, 2, 16, 16, "dot_bf16x2(a[i,p,k], b[p,k,j]) + 1", "f32");
}

// Whatever machine this is: what is emitted for those that multiply matrices in registers, and for what not.
TEST(RunCompiled, MultipliesMatricesInRegisters) {
  const auto has_instruction = [](int64_t rows, int64_t summed, int64_t lanes, std::string_view dot,
                                  std::string_view instruction) {
    const loops::Kernel kernel = loops::parse_checked_kernel(fmt::format(
        R"(kernel k(a: i32[16,16], b: i32[16,16]) -> (y: {4}[16,16]) {{
  for i in 0..{0} tile {{
    for k in 0..{1} {{
      for j in 0..{2} vector {{
        y[i,j] += {3}(a[i,k], b[k,j])
      }}
    }}
  }}
}})",
        rows, summed, lanes, dot, dot == "dot_bf16x2" ? "f32" : "i32"));
    Target target;
    target.architecture = Architecture::Arm64;
    target.cpu = this_machine().cpu;
    target.features = {"+bf16", "+i8mm"};
    target.vector_registers = 32;
    return codegen::generate_text(kernel, target).find(instruction) != std::string::npos;
  };
  EXPECT_TRUE(has_instruction(10, 6, 8, "dot_bf16x2", "bfmmla"));
  EXPECT_TRUE(has_instruction(2, 2, 12, "dot_i8x4", "usmmla"));
  EXPECT_FALSE(has_instruction(3, 2, 12, "dot_i8x4", "usmmla")) << "two rows at a time";
  EXPECT_FALSE(has_instruction(4, 3, 12, "dot_bf16x2", "bfmmla")) << "two words at a time";
  EXPECT_FALSE(has_instruction(4, 4, 6, "dot_bf16x2", "bfmmla")) << "four lanes at a time";
}

// Several products to the same sums, of bf16 that lie side by side, and what is fetched for them.
TEST(RunCompiled, AddsProductsOfTilesToTheSameSums) {
  const auto expect_products = [](std::string_view guard, std::string_view high, std::string_view place) {
    expect_interpreted(fmt::format(
                           R"(kernel k(a: i32[48,32], b: i32[3,40,32]) -> (p: bf16[48,64], y: f32[40,40]) {{
  for i in 0..48 {{
    for k in 0..32 {{
      p[i,2*k] = bf16(a[i,k] / 65536)
      p[i,2*k+1] = bf16(a[i,k] % 7)
    }}
  }}
  for i in 0..40 {{
    for j in 0..40 {{
      y[i,j] = 7
    }}
  }}
  for r in 0..2 {{
    for i in 0..16 tile {{
      for k in 0..16 {{
        for j in 0..32 vector {{
          if {0} >= 0 {{
            prefetch b[1,k+16,j]
            prefetch b[0,k+16,j]
          }}
          y[i+16*r,j] += dot_bf16x2(pack_bf16x2(p[i+16*r,2*k], p[i+16*r,{1}]), b[1,k,j])
          y[i+16*r,j] += dot_bf16x2(pack_bf16x2(p[i+16*r,2*k], p[i+16*r,{1}]), b[0,k,j])
          y[{2},j] += dot_bf16x2(pack_bf16x2(p[i+16*r+16,2*k+2], p[i+16*r+16,2*k+3]), b[0,k,j])
        }}
      }}
    }}
  }}
}})",
                           guard, high, place),
                       {pairs_of_integers({48, 32}, 1), pairs_of_integers({3, 40, 32}, 2)});
  };
  expect_products("-r", "2*k+1", "i+16*r");
  expect_products("1-r", "2*k+1", "i+16*r");
  expect_products("-i", "2*k+1", "i+16*r");
  expect_products("-r", "2*k+2", "i+16*r");
  expect_products("-r", "2*k+1", "i+8*r");
}

// What has been read for all lanes is not read again for some of them, which machines without masks do lane
// by lane.
TEST(RunCompiled, ReadsOnceWhatIsChosenByItself) {
  const auto code = [](std::string_view otherwise) {
    return codegen::generate_text(
        loops::parse_checked_kernel(fmt::format(R"(kernel k(x: f32[64], z: f32[65]) -> (y: f32[64]) {{
  for i in 0..64 vector {{
    y[i] = select(x[i] + z[i] < 0, 0, {})
  }}
}})",
                                                otherwise)),
        this_machine());
  };
  EXPECT_EQ(code("x[i] + z[i]").find("masked.load"), std::string::npos) << code("x[i] + z[i]");
  EXPECT_NE(code("x[i] + z[i+1]").find("masked.load"), std::string::npos);
}

TEST(RunCompiled, TakesNumbersApart) {
  Tensor x(DType::F32, {37});
  for (int64_t i = 0; i < x.count(); ++i)
    x.mutable_data<float>()[static_cast<size_t>(i)] =
        std::ldexp(static_cast<float>(7919 * i - 100000), static_cast<int>(i % 9) - 4);
  expect_interpreted(
      R"(kernel k(x: f32[37]) -> (a: bf16[37], b: bf16[37], c: bf16[37], w: i32[37], zero: f32[37]) {
  for i in 0..37 vector {
    a[i] = round_down_to_bf16(x[i])
    b[i] = round_down_to_bf16(bf16_remainder(x[i]))
    c[i] = round_down_to_bf16(bf16_remainder(bf16_remainder(x[i])))
    w[i] = pack_bf16x2(round_down_to_bf16(x[i]), round_down_to_bf16(bf16_remainder(x[i])))
    zero[i] = bf16_remainder(bf16_remainder(bf16_remainder(x[i])))
  }
})",
      {x});
}

// Bytes side by side, which are read as a word, and bytes from anywhere; by all lanes, and by each.
TEST(RunCompiled, JoinsBytes) {
  Tensor x(DType::U8, {6, 40});
  uint64_t seed = 1;
  for (uint8_t& byte : x.mutable_data<uint8_t>()) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<uint8_t>(seed >> 56);
  }
  const loops::Kernel kernel = loops::parse_checked_kernel(R"(kernel k(x: u8[6,40]) -> (y: i32[3,37]) {
  for i in 0..37 vector {
    y[0,i] = pack_i8x4(i32(x[5,36]), i32(x[5,37]), i32(x[5,38]), i32(x[5,39]))
    y[1,i] = pack_i8x4(i32(x[1,i]), i32(x[1,i+1]), i32(x[1,i+2]), i32(x[1,i+3]))
    y[2,i] = pack_i8x4(i32(x[0,3]), i32(x[1,4]), i32(x[2,5]), i32(x[3,6]) - 300)
  }
})");
  EXPECT_EQ(widen<double>(run_compiled(kernel, {x}, {}, this_machine()).front()),
            widen<double>(loops::interpret(kernel, {x}).front()));
}

// Squares that are transposed would write in another order.
TEST(RunCompiled, KeepsTheOrderOfRowsThatWriteInOnePlace) {
  Tensor x(DType::F32, {64, 48});
  for (int64_t i = 0; i < x.count(); ++i)
    x.mutable_data<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
  for (const char* body : {"y[r+c] = x[c,r]", "y[47-r+c] = x[c,r]", "y[2*r+c] = x[c,r]",
                           "y[80*r+c+16] = x[c,r]\n      y[80*r+c+80] = x[c,r] * 2"}) {
    const loops::Kernel kernel =
        loops::parse_checked_kernel(fmt::format(R"(kernel k(x: f32[64,48]) -> (y: f32[4000]) {{
  for i in 0..4000 {{
    y[i] = 0
  }}
  for r in 0..48 {{
    for c in 0..64 vector {{
      {}
    }}
  }}
}})",
                                                body));
    EXPECT_EQ(widen<double>(run_compiled(kernel, {x}, {}, this_machine()).front()),
              widen<double>(loops::interpret(kernel, {x}).front()))
        << body;
  }
}

// Threads share the iterations of nested loops, and may begin and end within a run of the innermost.
TEST(RunCompiled, TakesIterationsFromAnywhereToAnywhere) {
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
  const KernelFunction function = jit.load(codegen::generate_object(kernel, this_machine())).front();
  for (int64_t n : {0, 1, 4})
    for (int64_t begin = 0; begin <= 6 * n; ++begin)
      for (int64_t end = begin; end <= 6 * n; ++end) {
        std::vector<int64_t> got(static_cast<size_t>(6 * n)), wanted = got;
        for (int64_t iteration = begin; iteration < end; ++iteration)
          wanted[static_cast<size_t>(iteration)] =
              6 * (iteration % n) + 2 * (iteration / n % 3) + iteration / n / 3 + 1;
        std::byte* const buffer = reinterpret_cast<std::byte*>(got.data());
        EXPECT_EQ(function(&buffer, &n, nullptr, begin, end), 0);
        EXPECT_EQ(got, wanted) << "iterations " << begin << " to " << end << " of " << 6 * n;
      }
}

// Its memory is taken once, though its statements are there four times.
TEST(RunCompiled, ReusesScratchMemoryInEveryIteration) {
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
  EXPECT_EQ(widen<double>(run_compiled(kernel, {x}, {{"n", 5000}}, this_machine()).front()),
            (std::vector<double>{10000, 10000, 10000, 10000}));
}

}  // namespace
}  // namespace tenon
