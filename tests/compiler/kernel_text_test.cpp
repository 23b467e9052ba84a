// What graphs are scheduled to, as text, for targets by name: the same on every host.
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::CompileContext;

namespace {

std::string scheduled(std::string_view target, std::string_view text) {
  return kernels_in(*read(text), for_target(target));
}

// Each line stands in the text, after the one before.
void expect_lines(const std::string& text, std::initializer_list<std::string_view> lines) {
  size_t from = 0;
  for (const std::string_view line : lines) {
    const size_t at = text.find(fmt::format("{}\n", line), from);
    ASSERT_NE(at, std::string::npos) << "no line '" << line << "' after those before:\n" << text;
    from = at + line.size();
  }
}

constexpr std::string_view kGemm = R"(graph g(%x: f32[64,64], %w1: f32[64,128], %w2: f32[128]) {
  %0 = matmul(%x, %w1)
  %1 = add(%0, %w2)
  %2 = relu(%1)
  return %2
})";

TEST(KernelText, Pointwise) {
  EXPECT_EQ(scheduled("avx2", R"(graph g(%x: f32[n,40], %y: f32[40]) {
      %0 = add(%x, %y)
      %1 = relu(%0)
      return %1
    })"),
            R"(kernel kernel(x0: f32[n0,40], x1: f32[40]) -> (y0: f32[n0,40]) {
  for r0 in 0..n0 parallel {
    for r1 in 0..40 vector {
      y0[r0,r1] = select(x0[r0,r1] + x1[r1] < 0, 0, x0[r0,r1] + x1[r1])
    }
  }
}
)");
}

// Exponentials are added up as they are computed.
TEST(KernelText, SoftmaxOfRows) {
  EXPECT_EQ(scheduled("avx2", R"(graph g(%x: f32[n,40]) {
      %0 = softmax(%x, axis=-1)
      return %0
    })"),
            R"(kernel kernel(x0: f32[n0,40]) -> (y0: f32[n0,40]) {
  for r0 in 0..n0 parallel {
    local t0: f32[]
    local t1: f32[40]
    local t2: f32[]
    t2[] = -inf
    for s0k0 in 0..40 vector {
      t2[] max= x0[r0,s0k0]
    }
    t0[] = 0
    for s1i1 in 0..40 vector {
      t1[s1i1] = exp(x0[r0,s1i1] - t2[])
      t0[] += t1[s1i1]
    }
    for s3i1 in 0..40 vector {
      y0[r0,s3i1] = t1[s3i1] / t0[]
    }
  }
}
)");
}

// A tile of 4 x 64, B in panels of 64, and an epilogue on the sums in registers.
TEST(KernelText, GemmWithPackedBOnAvx512) {
  EXPECT_EQ(scheduled("avx512", kGemm),
            R"(kernel kernel(x0: f32[64,64], x1: f32[2,64,64], x2: f32[128]) -> (y0: f32[64,128]) {
  for part0 in 0..4 parallel {
    for lanes0 in 0..2 parallel {
      for rows0 in 4*part0..min(4*part0+4,16) {
        local t0: f32[4,64] in private
        for row0 in 0..4 unrolled {
          for lane0 in 0..64 vector {
            t0[row0,lane0] = 0
          }
        }
        for k0 in 0..64 {
          local t1: f32[64] in private
          for lane0 in 0..64 vector {
            t1[lane0] = x1[lanes0,k0,lane0]
          }
          prefetch x1[lanes0+1,0,16*k0+1024*min(rows0-4*part0,3)]
          for lane0 in 0..64 vector {
            prefetch x1[lanes0,k0+24,lane0]
          }
          for row0 in 0..4 unrolled {
            for lane0 in 0..64 vector {
              t0[row0,lane0] += x0[row0+4*rows0,k0] * t1[lane0]
            }
          }
        }
        for row0 in 0..4 unrolled {
          for lane0 in 0..64 vector {
            y0[row0+4*rows0,lane0+64*lanes0] = select(t0[row0,lane0] + x2[lane0+64*lanes0] < 0, 0, t0[row0,lane0] + x2[lane0+64*lanes0])
          }
        }
      }
    }
  }
}
)");
}

TEST(KernelText, GemmWithPackedBOnNeon) {
  expect_lines(
      scheduled("neon", kGemm),
      {"kernel kernel(x0: f32[64,64], x1: f32[8,64,16], x2: f32[128]) -> (y0: f32[64,128]) {",
       "  for lanes0 in 0..8 parallel {", "    for rows0 in 0..16 {", "      local t0: f32[4,16] in private",
       "            t0[row0,lane0] += x0[row0+4*rows0,k0] * t1[lane0]"});
}

constexpr std::string_view kBytes = R"(graph g(%x: u8[64,64], %w1: i8[64,128]) {
  %a = cast(%x, to=i32)
  %b = cast(%w1, to=i32)
  %y = matmul(%a, %b)
  return %y
})";

// Four bytes of a row with four of a column, in each 32 bits.
TEST(KernelText, GemmOfBytesOnAvx512) {
  expect_lines(scheduled("avx512", kBytes),
               {"kernel kernel(x0: i32[64,16], x1: i32[4,16,32]) -> (y0: i32[64,128]) {",
                "        local t0: i32[8,32] in private", "        for k0 in 0..16 {",
                "              t0[row0,lane0] += dot_i8x4(x0[row0+8*rows0,k0], t1[lane0])"});
}

// Rows are marked as a tile for the instructions that multiply matrices in registers.
TEST(KernelText, GemmOfBytesOnNeonI8mm) {
  EXPECT_EQ(scheduled("neon-i8mm", kBytes),
            R"(kernel kernel(x0: i32[64,16], x1: i32[16,16,8]) -> (y0: i32[64,128]) {
  for lanes0 in 0..16 parallel {
    for rows0 in 0..8 {
      local t0: i32[8,8] in private
      for row0 in 0..8 unrolled {
        for lane0 in 0..8 vector {
          t0[row0,lane0] = 0
        }
      }
      for row0 in 0..8 tile {
        for k0 in 0..16 {
          for lane0 in 0..8 vector {
            t0[row0,lane0] += dot_i8x4(x0[row0+8*rows0,k0], x1[lanes0,k0,lane0])
          }
        }
      }
      for row0 in 0..8 unrolled {
        for lane0 in 0..8 vector {
          y0[row0+8*rows0,lane0+8*lanes0] = t0[row0,lane0]
        }
      }
    }
  }
}
)");
}

TEST(KernelText, GemmOfBytesIsNotMarkedWhereNoInstructionMultipliesMatrices) {
  for (const std::string_view target : {"avx2", "avx512", "neon"})
    EXPECT_FALSE(has(scheduled(target, kBytes), " tile {")) << target;
}

// Tiles of 4 x 4, so 36 products of 14 tiles with 64 channels; the image has a border of zeros.
TEST(KernelText, WinogradOnAvx512) {
  expect_lines(scheduled("avx512", R"(graph g(%x: f32[1,64,56,56], %w1: f32[64,64,3,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      return %0
    })"),
               {"kernel kernel(x0: f32[1,64,56,56]) -> (y0: f32[1,58,58,64]) {",
                "kernel kernel(x0: f32[1,58,58,64], x1: f32[2,36,64,32]) -> (y0: f32[1,56,56,64]) {",
                "  for block0 in 0..14 parallel {", "      local t0: f32[36,14,64]",
                "            local t2: f32[6,6,16] in private", "        for element0 in 0..36 {",
                "            local t4: f32[14,32] in private",
                "                  t4[row0,lane0] += t0[element0,row0+14*rows0,channel0] * t5[lane0]",
                "              local t7: f32[4,4,16] in private"});
}

// 64 rows at a time: scores, softmax and the product with v while they are in cache.
TEST(KernelText, FusedAttentionOnAvx512) {
  const std::string text = scheduled("avx512", R"(graph g(%q: f32[4,n,64], %k: f32[4,n,64], %v: f32[4,n,64]) {
      %0 = matmul(%q, %k, transpose_b=true)
      %1 = softmax(%0, axis=-1)
      %2 = matmul(%1, %v)
      return %2
    })");
  EXPECT_EQ(text.find("kernel kernel(", 1), std::string::npos) << "one kernel";
  expect_lines(text,
               {"kernel kernel(x0: f32[4,n0,64], x1: f32[4,n0,64], x2: f32[4,n0,64]) -> (y0: f32[4,n0,64]) {",
                "        for queries0 in 0..floor((n0+63)/64) {",
                "          local t1: f32[64,32*floor((n0+31)/32)+32]",
                "                  local t3: f32[8,32] in private",
                "                t8[member0] max= t1[6*group0+member0,s1k0]",
                "                t7[member0,s2i2] = exp(t1[6*group0+member0,s2i2] - t8[member0])",
                "                local t9: f32[8,32] in private",
                "                        t10[row0,lane0] += t1[8*group0+row0+8*rows0,ek0] * t11[lane0]"});
}

// Four rows of the result at a time need six of the first, plus borders; all of the wide images stays in
// cache.
TEST(KernelText, OverlappedTilesOnAvx512) {
  expect_lines(scheduled("avx512", R"(graph g(%x: f32[1,8,256,256], %w0: f32[32,8,1,1], %w1: f32[32,1,3,3],
                                              %w2: f32[8,32,1,1]) {
      %0 = conv(%x, %w0, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      %1 = relu(%0)
      %2 = conv(%1, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=32)
      %3 = relu(%2)
      %4 = conv(%3, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      return %4
    })"),
               {"kernel kernel(x0: f32[1,256,256,8], x1: f32[1,1,1,8,32], x2: f32[1,1,3,3,32], x3: "
                "f32[1,1,1,32,8]) -> (y0: f32[1,256,256,8]) {",
                "  for tile0 in 0..64 parallel {", "    local t0: f32[1,8,258,32]",
                "          local t1: f32[14,32] in private", "    local t3: f32[1,4,256,32]",
                "          local t4: f32[8,32] in private"});
}

}  // namespace
}  // namespace tenon
