// Which shared buffers stay in the registers of quads.
#include "codegen/cuda/quads.h"

#include <gtest/gtest.h>

namespace tenon::codegen::cuda {
namespace {

constexpr int64_t kThreads = 32;

std::map<std::string, QuadBuffer> quads_in(const std::string& statements) {
  const loops::Kernel kernel = loops::parse_checked_kernel(fmt::format(
      "kernel k(x: f32[32,8]) -> (y: f32[32,8]) {{ for b in 0..1 block(32) {{ {} }} }}", statements));
  return find_quad_buffers(loops::parallel_regions_of(kernel).front(), kThreads);
}

// What each thread of a quad has of two rows, and the greatest of all four.
std::string exchange(const std::string& written, const std::string& read) {
  return fmt::format(R"(
    local own: f32[16,4] in shared
    local all: f32[32,2] in private
    for p in 0..32 thread {{ for h in 0..2 unrolled {{ {} }} }}
    for p in 0..32 thread {{ for h in 0..2 unrolled {{
      all[p,h] = x[p,h]
      {}
      y[p,h] = all[p,h] }} }})",
                     written, read);
}
const std::string kWritten = "own[8*h+floor(p/4),mod(p,4)] = x[p,h]",
                  kRead = "for o in 0..4 unrolled { all[p,h] max= own[8*h+floor(p/4),o] }";

TEST(Quads, ExchangeWhatEachThreadHasOfARow) {
  const std::map<std::string, QuadBuffer> quads = quads_in(exchange(kWritten, kRead));
  ASSERT_TRUE(quads.contains("own"));
  EXPECT_FALSE(quads.at("own").is_factor());
  EXPECT_EQ(quads.at("own").rows, (std::vector<std::pair<std::string, int64_t>>{{"h", 2}}));
}

TEST(Quads, AreNotOfOtherRowsOrThreads) {
  for (const auto& [written, read] : std::vector<std::pair<std::string, std::string>>{
           // Another row is read, that of another quad.
           {kWritten, "all[p,h] max= own[8*h+mod(floor(p/4)+1,8),0]"},
           // Which element a thread writes is not its number.
           {"own[8*h+floor(p/4),mod(p+1,4)] = x[p,h]", kRead},
           // Every quad writes the same rows.
           {"own[h,mod(p,4)] = x[p,h]", "all[p,h] max= own[h,0]"},
           // Threads combine what they have.
           {"own[8*h+floor(p/4),mod(p,4)] += x[p,h]", kRead},
           // Not all threads of a quad read.
           {kWritten, "if p-5 >= 0 { all[p,h] max= own[8*h+floor(p/4),0] }"},
           {kWritten, "all[p,h] = select(x[p,h] < 0, own[8*h+floor(p/4),0], 1)"}})
    EXPECT_TRUE(quads_in(exchange(written, read)).empty()) << written << "\n" << read;
}

TEST(Quads, AreNotOfWhatAllThreadsUseAlike) {
  EXPECT_TRUE(quads_in(exchange(kWritten, kRead) + "y[0,0] = own[0,0]").empty());
}

// 16 rows of weights, which are multiplied with v.
std::string product(const std::string& column, const std::string& factor, const std::string& k = "0..16") {
  return fmt::format(R"(
    local w: f16[16,24] in shared
    local v: f16[16,8] in shared
    local s: f32[32,1,2,2] in private
    for e in 0..128 thread {{ v[floor(e/8),mod(e,8)] = f16(x[floor(e/8),mod(e,8)]) }}
    for p in 0..32 thread {{ for i in 0..1 unrolled {{ for h in 0..2 unrolled {{
      for j in 0..2 unrolled {{ for l in 0..2 unrolled {{
        s[p,0,h,l] = 0
        w[16*i+8*h+floor(p/4),{}] = f16(x[p,2*j+l]) }} }} }} }} }}
    for p in 0..32 thread {{ for k in {} tile {{ for i in 0..1 unrolled {{ for h in 0..2 unrolled {{
      for l in 0..2 unrolled {{ s[p,i,h,l] += {} }} }} }} }} }}
    for p in 0..32 thread {{ y[p,0] = s[p,0,0,0] }})",
                     column, k, factor);
}
const std::string kColumn = "8*j+2*mod(p,4)+l",
                  kFactor = "f32(w[16*i+8*h+floor(p/4),k]) * f32(v[k,2*mod(p,4)+l])";

TEST(Quads, KeepTheFirstFactorOfAProduct) {
  const std::map<std::string, QuadBuffer> quads = quads_in(product(kColumn, kFactor));
  ASSERT_TRUE(quads.contains("w"));
  EXPECT_TRUE(quads.at("w").is_factor());
  EXPECT_EQ(quads.at("w").fragments, 2);
  EXPECT_EQ(quads.at("w").fragment, "j");
  EXPECT_EQ(quads.at("w").of_two, "l");
  EXPECT_EQ(quads.at("w").products.size(), 1);
}

TEST(Quads, KeepNoFactorThatLiesOtherwise) {
  for (const std::string& statements :
       {product("8*j+2*mod(p,4)+1-l", kFactor),  // the two are the other way round
        product("2*mod(p,4)+l+8-8*j", kFactor),
        product(kColumn, "f32(w[16*i+8*h+floor(p/4),15-k]) * f32(v[k,2*mod(p,4)+l])"),
        product(kColumn, "f32(v[k,2*mod(p,4)+l]) * f32(w[16*i+8*h+floor(p/4),k])"),  // it is the second
        product(kColumn, kFactor, "0..8")})
    EXPECT_FALSE(quads_in(statements).contains("w")) << statements;
}

}  // namespace
}  // namespace tenon::codegen::cuda
