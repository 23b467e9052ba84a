#include <fmt/ranges.h>

#include <ranges>

#include "compiler/expect_compiled.h"

namespace tenon {
namespace {

// A constant of bytes, spread over all that they can be.
std::string bytes(std::string_view dtype, int64_t rows, int64_t columns, uint64_t seed) {
  std::string text = fmt::format("constant(value={}[{},{}] {{", dtype, rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const auto byte = static_cast<int64_t>(seed >> 56) - (dtype == "i8" ? 128 : 0);
    text += fmt::format("{}{}", i == 0 ? "" : ", ", byte);
  }
  return text + "})";
}

// The product of x, quantised as one dtype, with a constant of another; `less_x` and `less_w` are subtracted
// from them.
std::unique_ptr<Graph> product(std::string_view x, std::string_view w, std::string_view less_x,
                               std::string_view less_w, int64_t inner, bool transposed = false,
                               std::string_view rows = "20") {
  const int64_t columns = 37;
  return read(fmt::format(
      R"(graph g(%x: f32[{0},{1}]) {{
        %h = constant(value=f32[] {{127.0}})
        %o = constant(value=f32[] {{{2}}})
        %0 = mul(%x, %h)
        %1 = add(%0, %o)
        %q = cast(%1, to={3})
        %w = {4}
        %a0 = cast(%q, to=i32)
        %za = constant(value=i32[] {{{5}}})
        %a = sub(%a0, %za)
        %b0 = cast(%w, to=i32)
        %zb = constant(value=i32[] {{{6}}})
        %b = sub(%b0, %zb)
        %y = matmul(%a, %b, transpose_b={7})
        return %y
      }})",
      rows, inner, x == "u8" ? "128.0" : "0.0", x,
      transposed ? bytes(w, columns, inner, 7) : bytes(w, inner, columns, 7), less_x, less_w, transposed));
}

TEST(QuantizedMatmul, TakesAllZeroPoints) {
  for (const char* x : {"u8", "i8"})
    for (const char* w : {"u8", "i8"})
      for (const char* less_x : {"0", "77"})
        for (const char* less_w : {"0", "115"}) {
          const std::unique_ptr<Graph> graph = product(x, w, less_x, less_w, 36);
          EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
          expect_as_evaluated(*graph);
        }
}

TEST(QuantizedMatmul, TakesTransposedWeightsAndAnyNumberOfRows) {
  const std::unique_ptr<Graph> graph = product("u8", "i8", "3", "0", 64, true, "n");
  EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4("));
  for (const int64_t rows : {1, 2, 9, 33})
    expect_as_evaluated(*graph, {{"n", rows}});
}

// Sums that are not of whole dot products get some products by 0 more, unless they are few.
TEST(QuantizedMatmul, TakesSumsOfAnyLength) {
  for (const char* w : {"u8", "i8"})
    for (const char* less_w : {"0", "115", "-3"})
      for (const bool transposed : {false, true})
        for (const int64_t inner : {37, 38, 39}) {
          const std::unique_ptr<Graph> graph = product("u8", w, "3", less_w, inner, transposed);
          const bool has_room = w == std::string_view("i8") || less_w != std::string_view("-3");
          EXPECT_EQ(has(kernels_in(*graph), "dot_i8x4("), has_room) << kernels_in(*graph);
          expect_as_evaluated(*graph);
        }
  const std::unique_ptr<Graph> few = product("u8", "i8", "3", "0", 7);
  EXPECT_FALSE(has(kernels_in(*few), "dot_i8x4("));
  expect_as_evaluated(*few);
}

// Of which those of a recurrent layer are one for each direction.
TEST(QuantizedMatmul, TakesWeightsThatAreSlices) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%q: u8[3,256], %w: i8[2,300,256]) {
    %0 = constant(value=i64[1] {1}) %1 = constant(value=i64[1] {2})
    %2 = slice(%w, %0, %1, axes=[0]) %3 = squeeze(%2, axes=[0]) %4 = transpose(%3, permutation=[1,0])
    %a = cast(%q, to=i32) %b = cast(%4, to=i32) %y = matmul(%a, %b) return %y })");
  EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
  expect_as_evaluated(*graph);
}

// x86 without VNNI adds products of pairs of words, in registers of each size.
TEST(QuantizedMatmul, IsExactWithoutDotProducts) {
  std::vector<std::string> lacking;
  for (const char* more : {"vnni", "avx512", "avx"}) {
    lacking.emplace_back(more);
    compiler::CompileContext options = without_cache();
    std::erase_if(options.target.features, [&](const std::string& feature) {
      return std::ranges::any_of(
          lacking, [&](const std::string& part) { return feature.find(part) != std::string::npos; });
    });
    expect_as_evaluated(*product("u8", "i8", "3", "0", 64), {}, options);
    // All products are as large as can be.
    expect_as_evaluated(*read(R"(graph g(%x: f32[5,64]) {
      %0 = mul(%x, %x) %c = constant(value=f32[] {300}) %1 = add(%0, %c) %2 = constant(value=f32[] {255})
      %3 = min(%1, %2) %q = cast(%3, to=u8) %a = cast(%q, to=i32)
      %w = constant(value=i8[64,40] splat -128) %b = cast(%w, to=i32) %y = matmul(%a, %b) return %y })"),
                        {}, options);
  }
}

// Weights that were joined when products became one, with zero points for each column.
TEST(QuantizedMatmul, TakesJoinedWeights) {
  for (const bool shifted : {false, true}) {
    const std::unique_ptr<Graph> graph = read(fmt::format(
        R"(graph g(%q: u8[20,32]) {{
          %v = {} %w = {}
          %both = concat([%v, %w], axis=1)
          %wide = cast(%both, to=i32)
          %z = constant(value=i32[1,45] {{{}}})
          %b = sub(%wide, %z)
          %a = cast(%q, to=i32)
          %y = matmul(%a, {})
          return %y
        }})",
        bytes("u8", 32, 5, 1), bytes("u8", 32, 40, 2), fmt::join(std::views::iota(100, 145), ", "),
        shifted ? "%b" : "%wide"));
    EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

// As the graph may say it, with the bytes of inputs and of what is computed, weights that are joined along
// either dimension, and such as are computed when the program runs.
TEST(WideningMatmul, ComputesWhatItsFormulaSays) {
  for (const int64_t first : {2, 3, 4, 9})
    for (const char* weights : {"%joined", "%computed"}) {
      const std::unique_ptr<Graph> graph = read(fmt::format(
          R"(graph g(%x: f32[n,12], %bytes: u8[n,8]) {{
            %h = constant(value=f32[] {{127.0}})
            %0 = mul(%x, %h)
            %1 = add(%0, %h)
            %a = cast(%1, to=u8)
            %v = {} %w = {}
            %joined = concat([%v, %w], axis=0)
            %2 = reduce_max(%x, axes=[0,1])
            %3 = cast(%2, to=i8)
            %computed = add(%joined, %3)
            %y = widening_matmul(%a, {}, accumulator=i32)
            %u = {} %t = {}
            %wide = concat([%u, %t], axis=1)
            %z = widening_matmul(%bytes, %wide, accumulator=i32)
            return %y, %z
          }})",
          bytes("i8", first, 21, 1), bytes("i8", 12 - first, 21, 2), weights, bytes("i8", 8, 21, 3),
          bytes("i8", 8, 20, 4)));
      EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
      for (const int64_t rows : {1, 7, 40})
        expect_as_evaluated(*graph, {{"n", rows}});
      compiler::CompileContext unfolded = without_cache();
      unfolded.disabled = {"fold-constants"};  // weights are joined when the program is prepared
      expect_as_evaluated(*graph, {{"n", 7}}, unfolded);
      const std::unique_ptr<runtime::Executor> program = compile(*graph, unfolded);
      EXPECT_TRUE(std::ranges::any_of(program->program().prepare.steps, [](const runtime::PrepareStep& step) {
        return step.vnni_dim && step.weights.size() == 2;
      }));
    }
}

TEST(WideningMatmul, TakesAllDTypes) {
  for (const char* text : {
           R"(graph g(%x: f32[9,32], %w: f32[32,40]) {
             %h = constant(value=f32[] {100.0})
             %0 = mul(%x, %h)
             %a = cast(%0, to=i8)
             %1 = mul(%w, %h)
             %b = cast(%1, to=i8)
             %y = widening_matmul(%a, %b, accumulator=i32)
             return %y
           })",
           R"(graph g(%x: f32[9,32], %w: f32[32,40]) {
             %h = constant(value=f32[] {100.0})
             %0 = mul(%x, %h)
             %1 = add(%0, %h)
             %a = cast(%1, to=u8)
             %2 = mul(%w, %h)
             %3 = add(%2, %h)
             %b = cast(%3, to=u8)
             %y = widening_matmul(%a, %b, accumulator=f32)
             return %y
           })",
           R"(graph g(%x: f32[9,32], %w: bf16[32,40]) {
             %h = constant(value=f32[] {100.0})
             %0 = mul(%x, %h)
             %a = cast(%0, to=i8)
             %y = widening_matmul(%a, %w, accumulator=f32)
             return %y
           })",
           "graph g(%x: bf16[9,32], %w: bf16[32,40]) { %y = widening_matmul(%x, %w, accumulator=f32) return "
           "%y }",
           "graph g(%x: bf16[9,31], %y: bf16[31,40]) { %z = widening_matmul(%x, %y, accumulator=f32) return "
           "%z }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_FALSE(has(kernels_in(*graph), "dot_")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

// What is subtracted differs along the sum, or the weights are not known.
TEST(QuantizedMatmul, LeavesAloneOtherProducts) {
  for (const char* text :
       {"graph g(%q: u8[20,32], %z: i32[32], %w: i8[32,40]) { %0 = cast(%q, to=i32) %1 = sub(%0, %z) "
        "%2 = cast(%w, to=i32) %3 = matmul(%1, %2) return %3 }",
        "graph g(%q: u8[20,32], %b: i8[32,40]) { %0 = cast(%q, to=i32) %1 = cast(%b, to=i32) "
        "%2 = matmul(%0, %1) return %2 }",
        "graph g(%q: i32[20,32], %w: i32[32,40]) { %0 = matmul(%q, %w) return %0 }"}) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_FALSE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

}  // namespace
}  // namespace tenon
