#include "codegen/cuda/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/cuda/run_on_host.h"
#include "loops/interpret.h"
#include "sanitized.h"

namespace tenon::codegen::cuda {
namespace {

// y = x * w, by warps of i fragments of 16 rows and j of 8 columns.
struct Product {
  std::string name;
  std::string dtype = "bf16";
  int64_t warps_m = 1, warps_n = 1, i = 1, j = 2, step = 32;
  bool a_along_k = true, b_along_k = false;  // which way the factors lie in shared memory
  std::string sums = "p,i,j,h,l";
  std::string sizes = "i,j,2,2";
  std::string value = "f32({a}) * f32({b})";
  bool is_tile = true;  // what is expected
};

std::string text_of(const Product& product) {
  const int64_t threads = 32 * product.warps_m * product.warps_n, rows = 16 * product.i * product.warps_m,
                columns = 8 * product.j * product.warps_n, m = 2 * rows, n = columns, k = 2 * product.step;
  const std::string row = fmt::format("{}*mod(floor(p/32),{})+16*i+8*h+floor(mod(p,32)/4)", 16 * product.i,
                                      product.warps_m),
                    column =
                        fmt::format("{}*floor(p/{})+8*j+2*mod(p,4)+l", 8 * product.j, 32 * product.warps_m);
  const auto shared = [&](const char* name, int64_t count, bool along_k) {
    return along_k
               ? fmt::format("local {}: {}[{},{}] in shared", name, product.dtype, count, product.step + 8)
               : fmt::format("local {}: {}[{},{}] in shared", name, product.dtype, product.step, count + 8);
  };
  const auto copy = [&](const char* to, const char* from, const std::string& first, int64_t count,
                        bool along_k) {
    return along_k ? fmt::format("copy({0},{1}) {2}[0,0] = {3}[{4},{1}*step]", count, product.step, to, from,
                                 first)
                   : fmt::format("copy({1},{0}) {2}[0,0] = {3}[{1}*step,{4}]", count, product.step, to, from,
                                 first);
  };
  const auto factor = [](const char* name, const std::string& at, bool along_k) {
    return along_k ? fmt::format("{}[{},k]", name, at) : fmt::format("{}[k,{}]", name, at);
  };
  std::string sizes = product.sizes;
  const auto replace = [](std::string& text, std::string_view what, const std::string& with) {
    if (const size_t at = text.find(what); at != std::string::npos)
      text.replace(at, what.size(), with);
  };
  replace(sizes, "i", std::to_string(product.i));
  replace(sizes, "j", std::to_string(product.j));
  std::string value = product.value;
  replace(value, "{a}", factor("a", row, product.a_along_k));
  replace(value, "{b}", factor("b", column, product.b_along_k));
  return fmt::format(
      R"(kernel k(x: {dtype}[{x}], w: {dtype}[{w}], bias: f32[{n}]) -> (y: f32[{m},{n}]) {{
  for tm in 0..2 block({threads}) {{
    local sums: f32[{threads},{sizes}] in private
    for p in 0..{threads} thread {{ {loops} {{ sums[{sums}] = 0 }} }} }} }} }}
    for step in 0..2 pipelined 2 {{
      {local_a}
      {local_b}
      {copy_a}
      {copy_b}
      for p in 0..{threads} thread {{ for k in 0..{step} tile {{ {loops} {{
        sums[{sums}] += {value} }} }} }} }} }} }}
    }}
    for p in 0..{threads} thread {{ for i in 0..{i} unrolled {{ for h in 0..2 unrolled {{ for j in 0..{j} unrolled {{
      for l in 0..2 vector {{ y[{rows}*tm+{row},{column}] = sums[{sums}] + bias[{column}] }} }} }} }} }} }} }})",
      fmt::arg("dtype", product.dtype),
      fmt::arg("x", product.a_along_k ? fmt::format("{},{}", m, k) : fmt::format("{},{}", k, m)),
      fmt::arg("w", product.b_along_k ? fmt::format("{},{}", n, k) : fmt::format("{},{}", k, n)),
      fmt::arg("m", m), fmt::arg("n", n), fmt::arg("i", product.i), fmt::arg("j", product.j),
      fmt::arg("rows", rows), fmt::arg("row", row), fmt::arg("column", column), fmt::arg("threads", threads),
      fmt::arg("sizes", sizes), fmt::arg("sums", product.sums), fmt::arg("step", product.step),
      fmt::arg("value", value),
      fmt::arg("loops", fmt::format("for i in 0..{} unrolled {{ for j in 0..{} unrolled {{ for h in 0..2 "
                                    "unrolled {{ for l in 0..2 unrolled",
                                    product.i, product.j)),
      fmt::arg("local_a", shared("a", rows, product.a_along_k)),
      fmt::arg("local_b", shared("b", columns, product.b_along_k)),
      fmt::arg("copy_a", copy("a", "x", fmt::format("{}*tm", rows), rows, product.a_along_k)),
      fmt::arg("copy_b", copy("b", "w", "0", columns, product.b_along_k)));
}

const std::vector<Product>& all_products() {
  static const std::vector<Product>& products = *new std::vector<Product>{
      {.name = "OneWarp"},
      {.name = "AlongK", .dtype = "f16", .b_along_k = true},
      {.name = "AcrossK", .dtype = "f16", .a_along_k = false},
      {.name = "AAcrossK", .a_along_k = false, .b_along_k = true},
      {.name = "WarpsAlongRows", .warps_m = 3, .i = 2, .b_along_k = true},
      {.name = "WarpsAlongColumns", .warps_n = 4, .i = 2, .step = 16},
      {.name = "WarpsAlongBoth", .dtype = "f16", .warps_m = 2, .warps_n = 2, .i = 3, .j = 4, .step = 16},
      {.name = "OddColumns", .warps_m = 2, .j = 3, .step = 16},
      {.name = "OddColumnsAlongK", .j = 1, .step = 64, .b_along_k = true},
      {.name = "SumsInAnotherOrder", .i = 2, .j = 2, .sums = "p,l,j,h,i", .sizes = "2,j,2,i"},
      {.name = "FactorsSwapped", .value = "f32({b}) * f32({a})"},
      {.name = "HalfAStep", .step = 24, .is_tile = false},
      {.name = "OfF32", .dtype = "f32", .is_tile = false},
      {.name = "Scaled", .value = "f32({a}) * f32({b}) * 2", .is_tile = false},
      {.name = "SumOfFactors", .value = "f32({a}) + f32({b})", .is_tile = false},
      {.name = "RoundedBefore", .value = "f32({a} * {b})", .is_tile = false}};
  return products;
}

struct Case {
  std::string name, text;
  bool is_tile;
};

// Where sizes are not those of tiles, and what is much like a product.
const std::vector<Case>& other_cases() {
  static const std::vector<Case>& cases = *new std::vector<Case>{
      {"StagedInRegisters",
       R"(kernel k(x: bf16[m,20], w: bf16[20,10]) -> (y: bf16[m,10]) {
  for tm in 0..floor((m+31)/32) block(64) {
    local a: bf16[32,40] in shared
    local b: bf16[32,24] in shared
    local sums: f32[64,2,2,2] in private
    for p in 0..64 thread { for h in 0..2 unrolled { for j in 0..2 unrolled { for l in 0..2 unrolled { sums[p,j,h,l] = 0 } } } }
    for p in 0..64 thread {
      for part in 0..4 unrolled { for row in 32*tm+8*part+floor(p/8)..32*tm+8*part+floor(p/8)+1 unrolled {
        for along in mod(p,8)..mod(p,8)+1 unrolled {
          for lane in 0..4 vector { a[8*part+floor(p/8),4*mod(p,8)+lane] = 0 }
          if m - 1 - row >= 0 and 4 - along >= 0 {
            for lane in 0..4 vector { a[8*part+floor(p/8),4*mod(p,8)+lane] = x[row,4*along+lane] } } } } }
      for part in 0..4 unrolled {
        for lane in 0..2 vector { b[8*part+floor(p/8),2*mod(p,8)+lane] = 0 }
        if 19 - 8*part - floor(p/8) >= 0 and 4 - mod(p,8) >= 0 {
          for lane in 0..2 vector { b[8*part+floor(p/8),2*mod(p,8)+lane] = w[8*part+floor(p/8),2*mod(p,8)+lane] } } } }
    for p in 0..64 thread { for k in 0..32 tile {
      for h in 0..2 unrolled { for j in 0..2 unrolled { for l in 0..2 unrolled {
        sums[p,j,h,l] += f32(a[16*floor(p/32)+8*h+floor(mod(p,32)/4),k]) * f32(b[k,8*j+2*mod(p,4)+l]) } } } } }
    for p in 0..64 thread { for h in 0..2 unrolled { for j in 0..2 unrolled {
      for row in 32*tm+16*floor(p/32)+8*h+floor(mod(p,32)/4)..32*tm+16*floor(p/32)+8*h+floor(mod(p,32)/4)+1 unrolled {
        if m - 1 - row >= 0 and 4 - 4*j - mod(p,4) >= 0 {
          for l in 0..2 vector { y[row,8*j+2*mod(p,4)+l] = bf16(max(sums[p,j,h,l], 0)) } } } } } } } })",
       true},
      // One after the other: the sums of the first are a factor of the second.
      {"TwoProducts",
       R"(kernel k(x: f16[32,32], w: f16[32,16], z: f16[16,16]) -> (y: f32[32,16]) {
  for b in 0..1 block(64) {
    local a: f16[32,40] in shared
    local c: f16[32,24] in shared
    local e: f16[16,24] in shared
    local d: f16[32,24] in shared
    local sums: f32[64,2,2,2] in private
    local more: f32[64,2,2,2] in private
    copy(32,32) a[0,0] = x[0,0]
    copy(32,16) c[0,0] = w[0,0]
    copy(16,16) e[0,0] = z[0,0]
    for p in 0..64 thread {
      for j in 0..2 unrolled { for h in 0..2 unrolled { for l in 0..2 unrolled { sums[p,j,h,l] = 0  more[p,j,h,l] = 0 } } }
      for k in 0..32 tile { for j in 0..2 unrolled { for h in 0..2 unrolled { for l in 0..2 unrolled {
        sums[p,j,h,l] += f32(a[16*floor(p/32)+8*h+floor(mod(p,32)/4),k]) * f32(c[k,8*j+2*mod(p,4)+l]) } } } } }
    for p in 0..64 thread { for j in 0..2 unrolled { for h in 0..2 unrolled { for l in 0..2 vector {
      d[16*floor(p/32)+8*h+floor(mod(p,32)/4),8*j+2*mod(p,4)+l] = f16(sums[p,j,h,l] / 16) } } } }
    for p in 0..64 thread { for k in 0..16 tile { for j in 0..2 unrolled { for h in 0..2 unrolled { for l in 0..2 unrolled {
      more[p,j,h,l] += f32(d[16*floor(p/32)+8*h+floor(mod(p,32)/4),k]) * f32(e[k,8*j+2*mod(p,4)+l]) } } } } }
    for p in 0..64 thread { for j in 0..2 unrolled { for h in 0..2 unrolled { for l in 0..2 vector {
      y[16*floor(p/32)+8*h+floor(mod(p,32)/4),8*j+2*mod(p,4)+l] = more[p,j,h,l] } } } } } })",
       true},
  };
  return cases;
}

// The second product of one warp, with one thing that is different.
std::string almost(std::string_view row, std::string_view column, std::string_view around = "",
                   std::string_view k = "k", std::string_view more = "") {
  return fmt::format(
      R"(kernel k(x: bf16[64,64], w: bf16[64,64]) -> (y: f32[32,2,2,2]) {{
  for b in 0..1 block(32) {{
    local a: bf16[24,72] in shared
    local c: bf16[32,24] in shared
    local sums: f32[32,2,2,2] in private
    copy(24,64) a[0,0] = x[0,0]
    copy(32,24) c[0,0] = w[0,0]
    for p in 0..32 thread {{
      for j in 0..2 unrolled {{ for h in 0..2 unrolled {{ for l in 0..2 unrolled {{ sums[p,j,h,l] = 0 }} }} }}
      {}
      for k in 0..32 tile {{ for j in 0..2 unrolled {{ for h in 0..2 unrolled {{ for l in 0..2 unrolled {{
        sums[p,j,h,l] += f32(a[{},{}]) * f32(c[k,{}]) {} }} }} }} }} {} }}
    for p in 0..32 thread {{ for j in 0..2 unrolled {{ for h in 0..2 unrolled {{ for l in 0..2 unrolled {{
      y[p,j,h,l] = sums[p,j,h,l] }} }} }} }} }} }})",
      around, row, k, column, more, std::string(std::ranges::count(around, '{'), '}'));
}

const std::string kRow = "8*h+floor(p/4)", kColumn = "8*j+2*mod(p,4)+l";

const std::vector<Case>& near_misses() {
  static const std::vector<Case>& cases = *new std::vector<Case>{
      {"None", almost(kRow, kColumn), true},
      {"BehindAGuardOfAll", almost(kRow, kColumn, "for t in 0..2 { if t - 1 >= 0 {"), true},
      {"RowsOfLanesInAnotherOrder", almost("8*h+mod(p,8)", kColumn), false},
      {"HalvesSideBySide", almost("h+2*floor(p/4)", kColumn), false},
      {"ColumnsApart", almost(kRow, "8*j+mod(p,4)+4*l"), false},
      {"ColumnsTwice", almost(kRow, "2*mod(p,4)+l"), false},
      {"RowsOfColumns", almost("8*j+8*h+floor(p/4)", kColumn), false},
      {"EverySecondOfK", almost(kRow, kColumn, "", "2*k"), false},
      {"FromAnOddRow", almost(kRow, "8*j+2*mod(p,4)+l+1"), false},
      {"FromAnOddK", almost(kRow, kColumn, "", "k+4"), false},
      {"ByAThread", almost(kRow, kColumn, "if 15 - p >= 0 {"), false},
      {"AsOftenAsTheThreadSays", almost(kRow, kColumn, "for t in 0..p {"), false},
      {"AlsoElsewhere", almost(kRow, kColumn, "", "k", "sums[p,j,h,l] max= 0"), false}};
  return cases;
}

bool has_tiles(const CudaText& text) { return text.text.find("ldmatrix") != std::string::npos; }

// y = relu(x * w + bias) by tiles of 128 x 128 in a ring of four.
constexpr std::string_view kGemm =
    R"(kernel gemm(x: bf16[512,1024], w: bf16[1024,768], bias: f32[768]) -> (y: bf16[512,768]) {
  for tm in 0..4 block(256) { for tn in 0..6 block {
    local sums: f32[256,4,4,2,2] in private
    for p in 0..256 thread { for i in 0..4 unrolled { for j in 0..4 unrolled { for h in 0..2 unrolled {
      for l in 0..2 unrolled { sums[p,i,j,h,l] = 0 } } } } }
    for step in 0..32 pipelined 4 {
      local a: bf16[128,40] in shared
      local b: bf16[32,136] in shared
      copy(128,32) a[0,0] = x[128*tm,32*step]
      copy(32,128) b[0,0] = w[32*step,128*tn]
      for p in 0..256 thread { for k in 0..32 tile {
        for i in 0..4 unrolled { for j in 0..4 unrolled { for h in 0..2 unrolled { for l in 0..2 unrolled {
          sums[p,i,j,h,l] += f32(a[64*mod(floor(p/32),2)+16*i+8*h+floor(mod(p,32)/4),k]) *
                             f32(b[k,32*floor(p/64)+8*j+2*mod(p,4)+l]) } } } } } }
    }
    for p in 0..256 thread { for i in 0..4 unrolled { for h in 0..2 unrolled { for j in 0..4 unrolled {
      for l in 0..2 vector {
        y[128*tm+64*mod(floor(p/32),2)+16*i+8*h+floor(mod(p,32)/4),128*tn+32*floor(p/64)+8*j+2*mod(p,4)+l] =
          bf16(max(sums[p,i,j,h,l] + bias[128*tn+32*floor(p/64)+8*j+2*mod(p,4)+l], 0)) } } } } } } } })";

TEST(Tiles, BecomeInstructionsOfAWarp) {
  const std::string text = emit_cuda(loops::parse_checked_kernel(kGemm)).text;
  const size_t begin = text.find("        const int p = thread;\n        {"),
               end = text.find("      slot = slot");
  EXPECT_EQ(text.substr(begin, end - begin), R"(        const int p = thread;
        {
          const int warp = p / 32, lane = thread % 32;
          #pragma unroll
          for (int k = 0; k < 32; k += 16) {
            unsigned a_fragments[4][4];
            #pragma unroll
            for (int i_2 = 0; i_2 < 4; ++i_2) {
              load_matrices(a_fragments[i_2], a + 2560 * (warp % 2) + 640 * i_2 + 40 * (lane % 16) + 8 * (lane / 16) + k);
            }
            unsigned b_fragments[2][4];
            #pragma unroll
            for (int j_2 = 0; j_2 < 2; ++j_2) {
              load_matrices_transposed(b_fragments[j_2], b + 136 * k + 136 * (lane % 16) + 32 * (warp / 2) + 16 * j_2 + 8 * (lane / 16));
            }
            #pragma unroll
            for (int i_2 = 0; i_2 < 4; ++i_2) {
              #pragma unroll
              for (int j_2 = 0; j_2 < 4; ++j_2) {
                multiply_add_bf16(sums[0][16 * i_2 + 4 * j_2], sums[0][16 * i_2 + 4 * j_2 + 1], sums[0][16 * i_2 + 4 * j_2 + 2], sums[0][16 * i_2 + 4 * j_2 + 3], a_fragments[i_2], b_fragments[j_2 / 2][j_2 % 2 * 2 + 0], b_fragments[j_2 / 2][j_2 % 2 * 2 + 1]);
              }
            }
          }
        }
      }
)");
}

// What stands in a cubin, where there is no disassembler. An instruction has 16 bytes, and begins with what
// it is; that of the frame tells what spills.
int count_instructions(const std::string& cubin, uint16_t code) {
  int count = 0;
  for (size_t at = 0; at + 16 <= cubin.size(); at += 16)
    count += std::memcmp(cubin.data() + at, &code, sizeof(code)) == 0 ? 1 : 0;
  return count;
}
uint32_t frame_bytes(const std::string& cubin) {
  const size_t at = cubin.find(std::string_view("\x04\x11\x08\x00", 4));  // EIATTR_FRAME_SIZE
  uint32_t bytes = UINT32_MAX;
  if (at != std::string::npos)
    std::memcpy(&bytes, cubin.data() + at + 8, sizeof(bytes));
  return bytes;
}

TEST(Tiles, AreCompiledWithoutSpills) {
  try {
    describe_nvrtc();
  } catch (const UserError& error) {
    GTEST_SKIP() << error.what();
  }
  constexpr uint16_t kHmma = 0x723c, kLdsm = 0x783b;
  const CudaText text = emit_cuda(loops::parse_checked_kernel(kGemm));
  for (const std::string_view name : {"sm_80", "sm_90"}) {
    const std::string cubin = compile_cuda(text, gpu_named(name)).bytes;
    EXPECT_EQ(count_instructions(cubin, kHmma), 32) << name;
    EXPECT_EQ(count_instructions(cubin, kLdsm), 12) << name;
    EXPECT_EQ(frame_bytes(cubin), 0) << name;
  }
}

class TilesOnHost : public testing::Test {
 protected:
  void SetUp() override {
    if (kIsSanitized)
      GTEST_SKIP() << "fibres and sanitizers do not go together";
  }
};

void expect_as_interpreted(const std::vector<Case>& cases, const std::map<std::string, int64_t>& sizes) {
  HostKernels kernels;
  for (const Case& each : cases)
    kernels.add(loops::parse_checked_kernel(each.text));
  kernels.compile();
  for (size_t number = 0; number < cases.size(); ++number) {
    SCOPED_TRACE(cases[number].name);
    const loops::Kernel kernel = loops::parse_checked_kernel(cases[number].text);
    EXPECT_EQ(has_tiles(emit_cuda(kernel)), cases[number].is_tile);
    const std::vector<Tensor> inputs = random_inputs(kernel, sizes);
    const std::vector<Tensor> expected = loops::interpret(kernel, inputs, sizes);
    for (const auto order : {HostKernels::Order::Ascending, HostKernels::Order::Descending}) {
      const HostKernels::Result result = kernels.run(number, inputs, sizes, order);
      ASSERT_FALSE(result.failed || result.is_deadlock);
      for (size_t i = 0; i < expected.size(); ++i)
        expect_close(result.outputs[i], expected[i], expected[i].dtype() == DType::F32 ? 1e-4 : 1e-2);
    }
    if (::testing::Test::HasFailure())
      FAIL() << emit_cuda(kernel).text;
  }
}

TEST_F(TilesOnHost, ProductsAreWhatTheInterpreterComputes) {
  std::vector<Case> cases;
  for (const Product& product : all_products())
    cases.push_back({product.name, text_of(product), product.is_tile});
  expect_as_interpreted(cases, {});
}

TEST_F(TilesOnHost, KernelsAroundProducts) { expect_as_interpreted(other_cases(), {{"m", 45}}); }

TEST_F(TilesOnHost, WhatIsNoProductStaysALoop) { expect_as_interpreted(near_misses(), {}); }

}  // namespace
}  // namespace tenon::codegen::cuda
