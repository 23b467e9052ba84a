#include "schedule/cpu/bf16x3_matmul.h"

#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "schedule/cpu/contraction_candidates.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::FusedKernel;
using compiler::fusion_of;
using compiler::kernels_of;
using lowering::ContractionChoice;
using lowering::ContractionChoices;
using lowering::Stage;
using runtime::Executor;
using schedule::choice_made;
using schedule::contraction_candidates;
using schedule::describe;

namespace {

CompileContext with_tiles() {
  CompileContext options = without_cache();
  options.target.matrix_tiles = true;
  options.target.vector_bytes = 64;
  options.target.vector_registers = 32;
  return options;
}

// The same, with all factors split that can be.
CompileContext splitting(const Graph& graph, CompileContext options) {
  options.tuning = ContractionChoices();
  for (const FusedKernel& kernel : fusion_of(graph, options).after)
    if (kernel.contraction)
      options.tuning[kernel.contraction->contraction->key] = {.bf16x3 = true};
  return options;
}

std::string split_kernels(const Graph& graph, const CompileContext& options = with_tiles()) {
  std::string text;
  for (const loops::Kernel& kernel : kernels_of(graph, splitting(graph, options)))
    text += loops::print(kernel);
  return text;
}

std::unique_ptr<Graph> product(const std::string& rows, int64_t depth, int64_t columns) {
  return read(fmt::format("graph g(%x: f32[{0},{1}], %w: f32[{1},{2}]) {{ %0 = matmul(%x, %w) return %0 }}",
                          rows, depth, columns));
}

constexpr const char* kConvolutions =
    R"(graph g(%x: f32[2,64,7,9], %w1: f32[96,64,1,1], %w2: f32[96,1,1], %w3: f32[64,96,1,1]) {
  %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
  %1 = add(%0, %w2)
  %2 = relu(%1)
  %3 = conv(%2, %w3, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
  return %3, %2
})";

TEST(Bf16x3Matmul, MakesProductsOfThreePartsEach) {
  const std::string text = split_kernels(*product("40", 64, 96));
  EXPECT_TRUE(has(text, "y2[r0] = round_down_to_bf16(bf16_remainder(bf16_remainder(x0[r0])))")) << text;
  EXPECT_TRUE(has(text, " tile {")) << text;
  EXPECT_TRUE(has(text, "i32[3,3,2,16,32]")) << text;
}

TEST(Bf16x3Matmul, IsPartOfWhatMakesAFactor) {
  const std::string text = split_kernels(*read(kConvolutions));
  EXPECT_TRUE(has(text, "= round_down_to_bf16(bf16_remainder(select(t0[row0,lane0] + ")) << text;
}

TEST(Bf16x3Matmul, LeavesAloneWhatTilesDoNotTake) {
  EXPECT_FALSE(has(split_kernels(*product("15", 64, 96)), " tile {")) << "too few rows";
  EXPECT_FALSE(has(split_kernels(*product("40", 33, 96)), " tile {")) << "an odd number of terms";
  EXPECT_FALSE(has(split_kernels(*product("40", 30, 96)), " tile {")) << "not a tile of terms";
  EXPECT_FALSE(has(split_kernels(*product("40", 64, 24)), " tile {")) << "too few columns";
  EXPECT_FALSE(has(split_kernels(*product("n", 64, 96)), " tile {")) << "there may be too few rows";
  const std::unique_ptr<Graph> graph = product("40", 64, 96);
  CompileContext options = with_tiles();
  options.numerics = NumericsBudget::Strict;
  EXPECT_FALSE(has(split_kernels(*graph, options), " tile {"));
  options = with_tiles();
  options.target.matrix_tiles = false;
  EXPECT_FALSE(has(split_kernels(*graph, options), " tile {"));
  options = with_tiles();
  options.tuning = ContractionChoices();
  EXPECT_FALSE(has(loops::print(kernels_of(*graph, options).back()), " tile {")) << "nobody chose it";
}

TEST(Bf16x3Matmul, IsOneOfTheChoices) {
  const std::unique_ptr<Graph> graph = product("40", 64, 96);
  CompileContext options = with_tiles();
  options.tuning = ContractionChoices();
  const Stage stage = *fusion_of(*graph, options).after.back().contraction;
  EXPECT_EQ(choice_made(stage, options.target).bf16x3, false);
  const std::vector<ContractionChoice> others = contraction_candidates(stage, options.target);
  EXPECT_NE(std::ranges::find(others, ContractionChoice{.bf16x3 = true}), others.end());
  options = splitting(*graph, options);
  const Stage split = *fusion_of(*graph, options).after.back().contraction;
  EXPECT_EQ(describe(choice_made(split, options.target)), "bf16x3");
  EXPECT_EQ(contraction_candidates(split, options.target), std::vector{ContractionChoice{.bf16x3 = false}});
}

void expect_as_exact_as_f32(const Graph& graph) {
  const CompileContext options = splitting(graph, without_cache());
  const Data inputs = inputs_for(graph, {});
  const Data wanted = evaluate(graph, inputs);
  const std::unique_ptr<Executor> program = compile(graph, options);
  for (const int threads : {1, 3}) {
    const Data got = program->run(inputs, {.threads = threads});
    for (size_t i = 0; i < wanted.size(); ++i) {
      const std::vector<double> a = widen<double>(got[i].tensor()), b = widen<double>(wanted[i].tensor());
      const double largest = std::abs(*std::ranges::max_element(b, {}, [](double x) { return std::abs(x); }));
      for (size_t k = 0; k < a.size(); ++k)
        ASSERT_NEAR(a[k], b[k], 1e-6 * largest) << "output " << i << ", element " << k;
    }
  }
}

TEST(Bf16x3Matmul, RoundsAsF32Does) {
  if (!this_machine().matrix_tiles)
    GTEST_SKIP() << "this machine does not multiply tiles";
  expect_as_exact_as_f32(*product("128", 768, 96));
  expect_as_exact_as_f32(*product("16", 32, 32));
  expect_as_exact_as_f32(*product("33", 34, 63));   // nothing is filled
  expect_as_exact_as_f32(*product("97", 110, 95));  // nor here
  expect_as_exact_as_f32(*read(kConvolutions));
  expect_as_exact_as_f32(*read(R"(graph g(%x: f32[3,17,64], %w1: f32[64,96], %w2: f32[64,40]) {
      %0 = relu(%x)
      %1 = matmul(%0, %w1)
      %2 = matmul(%0, %w2)
      return %1, %2
    })"));
}

// Slices are read with the same formula as the whole, but along shorter axes.
TEST(Bf16x3Matmul, SharesPartsOfTheSameElementsAlone) {
  if (!this_machine().matrix_tiles)
    GTEST_SKIP() << "this machine does not multiply tiles";
  for (const char* products :
       {"%2 = matmul(%0, %w1) %3 = matmul(%x, %w2)", "%2 = matmul(%x, %w2) %3 = matmul(%0, %w1)"})
    expect_as_exact_as_f32(*read(fmt::format(
        R"(graph g(%x: f32[64,128], %w1: f32[128,96], %w2: f32[128,64]) {{
      %b = constant(value=i64[1] {{0}})
      %e = constant(value=i64[1] {{32}})
      %0 = slice(%x, %b, %e, axes=[0])
      {}
      return %2, %3
    }})",
        products)));
}

TEST(Bf16x3Matmul, CountsRowsThatMeetTheSameWeights) {
  for (const char* x : {"5,1,8", "16,1,2", "5,3,8", "2,3,8", "4,1,40"}) {
    const std::unique_ptr<Graph> graph = read(
        fmt::format("graph g(%x: f32[{},256], %w: f32[3,256,64]) {{ %0 = matmul(%x, %w) return %0 }}", x));
    EXPECT_EQ(has(split_kernels(*graph), " tile {"), std::string_view(x) == "4,1,40") << x;
  }
}

}  // namespace
}  // namespace tenon
