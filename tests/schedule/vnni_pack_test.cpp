// Which products are packed into words, as text.
#include "schedule/cpu/vnni_pack.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "lowering/check.h"
#include "lowering/lower_graph.h"
#include "lowering/print.h"
#include "ops/registry.h"
#include "schedule/cpu/pack_constant.h"

namespace tenon {
namespace {

std::string packed(std::string_view text, bool in_bf16 = false) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(text);
  lowering::KernelGraph kernels = lowering::lower_graph(*graph);
  schedule::vnni_pack(kernels, in_bf16);
  EXPECT_EQ(check(kernels), std::vector<std::string>());
  return print(kernels);
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Constant weights, and `what` is done with them.
std::string with_weights(std::string_view inputs, std::string_view dtype, const Extents& extents,
                         std::string_view what) {
  std::string elements;
  for (int64_t i = 0; i < element_count(extents); ++i)
    elements += fmt::format("{}{}", i == 0 ? "" : ", ", i % 100);
  return fmt::format("graph g({}) {{ %w = constant(value={}[{}] {{{}}}) {} }}", inputs, dtype,
                     fmt::join(extents, ","), elements, what);
}

TEST(VnniPack, ReadsRowsThroughAnAliasOfWords) {
  EXPECT_EQ(packed(with_weights("%x: u8[n,8]", "i8", {8, 3},
                                "%y = widening_matmul(%x, %w, accumulator=i32) return %y")),
            R"(kernel graph "g" {
  input v0: u8[n,8] on cpu
  constant v1: i32[2,3] on cpu vnni along 0 = i8[8,3] hash 0x1ac434997ba8a949
  output v2: i32[n,3] on cpu
  buffer v2_t0_0: i32[n,3] on cpu
  buffer v0_words: i32[n,2] on cpu
  alias v0_words of v0 from "%y"
  define v2_t0_0 for i0 in 0..n, i1 in 0..3 over k0 in 0..2 from "%y" {
    v2_t0_0[i0,i1] = 0
    v2_t0_0[i0,i1] += dot_i8x4(v0_words[i0,k0], v1[k0,i1])
  }
  define v2 for i0 in 0..n, i1 in 0..3 from "%y" {
    v2[i0,i1] = v2_t0_0[i0,i1]
  }
  return v2
}
)");
}

TEST(VnniPack, PacksTwoBf16WhereItMay) {
  const std::string text = with_weights("%x: bf16[n,8]", "bf16", {8, 3},
                                        "%y = widening_matmul(%x, %w, accumulator=f32) return %y");
  EXPECT_TRUE(has(packed(text, true), "dot_bf16x2(v0_words[i0,k0], v1[k0,i1])")) << packed(text, true);
  EXPECT_FALSE(has(packed(text), "dot_bf16x2")) << packed(text);
}

// Whose channels are not contiguous.
TEST(VnniPack, JoinsTheChannelsOfImages) {
  const std::string text = packed(with_weights(
      "%x: u8[1,8,n]", "i8", {5, 8, 3}, "%y = widening_conv(%x, %w, accumulator=i32, pads=[1,1]) return %y"));
  EXPECT_TRUE(has(text, "i32[5,2,3] on cpu vnni along 1")) << text;
  EXPECT_TRUE(has(text, "dot_i8x4(pack_i8x4(")) << text;
  EXPECT_FALSE(has(text, "alias")) << text;
}

TEST(VnniPack, LeavesAloneWhatHasNoWholeWordsOrNoWeightsOfItsOwn) {
  const std::string product = "%y = widening_matmul(%x, %w, accumulator=i32) return %y";
  for (const std::string& text : {
           with_weights("%x: u8[n,6]", "i8", {6, 3}, product),
           with_weights("%x: i8[n,8]", "i8", {8, 3}, product),
           with_weights("%x: u8[n,8]", "u8", {8, 3}, product),
           std::string("graph g(%x: u8[n,8], %w: i8[8,3]) { ") + product + " }",
           with_weights("%x: u8[n,8]", "i8", {8, 3},
                        "%y = widening_matmul(%x, %w, accumulator=f32) return %y"),
           with_weights("%x: u8[n,8]", "i8", {8, 3},
                        "%y = widening_matmul(%x, %w, accumulator=i32) %z = relu(%w) return %y, %z"),
           with_weights("%x: u8[n,8]", "i8", {8, 3},
                        "%y = widening_matmul(%x, %w, accumulator=i32) return %y, %w"),
       })
    EXPECT_FALSE(has(packed(text), "dot_")) << packed(text);
}

TEST(VnniPack, PacksSharedFactorsOnce) {
  const std::string text =
      packed(with_weights("%x: u8[n,8]", "i8", {8, 3},
                          "%y = widening_matmul(%x, %w, accumulator=i32) "
                          "%z0 = abs(%y) %z = widening_matmul(%x, %w, accumulator=i32) return %z0, %z"));
  size_t aliases = 0;
  for (size_t at = text.find("alias "); at != std::string::npos; at = text.find("alias ", at + 1))
    ++aliases;
  EXPECT_EQ(aliases, 1) << text;
}

// Elements are packed along a dimension, the first lowest.
TEST(VnniPacked, HasTheFirstElementLowest) {
  Tensor bytes(DType::I8, {2, 4, 3}), halves(DType::BF16, {6, 5});
  for (int64_t i = 0; i < bytes.count(); ++i)
    bytes.mutable_data<int8_t>()[static_cast<size_t>(i)] = static_cast<int8_t>(i - 9);
  for (int64_t i = 0; i < halves.count(); ++i)
    halves.mutable_data<uint16_t>()[static_cast<size_t>(i)] = static_cast<uint16_t>(1000 * i);
  for (const int threads : {1, 3}) {
    const Tensor quads = schedule::vnni_packed(bytes, 1, threads);
    ASSERT_EQ(quads.extents(), (Extents{2, 1, 3}));
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j)
        for (int64_t k = 0; k < 4; ++k)
          EXPECT_EQ(static_cast<int8_t>(quads.data<int32_t>()[static_cast<size_t>(i * 3 + j)] >> (8 * k)),
                    12 * i + 3 * k + j - 9);
    const Tensor pairs = schedule::vnni_packed(halves, 0, threads);
    ASSERT_EQ(pairs.extents(), (Extents{3, 5}));
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 5; ++j)
        for (int64_t k = 0; k < 2; ++k)
          EXPECT_EQ(static_cast<uint16_t>(pairs.data<int32_t>()[static_cast<size_t>(i * 5 + j)] >> (16 * k)),
                    static_cast<uint16_t>(1000 * ((2 * i + k) * 5 + j)));
  }
}

}  // namespace
}  // namespace tenon
