#include "passes/target/convert_matmul_to_bf16.h"

#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "sanitized.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::kernels_of;
using runtime::Executor;

namespace {

CompileContext in_bf16() {
  CompileContext options = without_cache();
  options.precision = MatmulPrecision::BF16;
  return options;
}

int64_t count_of(const Graph& graph, std::string_view op) {
  return std::ranges::count_if(graph.nodes(), [&](const Node* node) { return node->is(op); });
}

// The program gives what the evaluator does with the products that it has chosen.
void expect_products(const Graph& graph, int64_t products, const std::map<std::string, int64_t>& sizes = {}) {
  SCOPED_TRACE(print(graph));
  const std::unique_ptr<Graph> rounded = graph.clone();
  Journal journal;
  convert_matmul_to_bf16(*rounded, journal);
  EXPECT_EQ(count_of(*rounded, "widening_matmul"), products);
  const Data inputs = inputs_for(graph, sizes);
  const Tensor wanted = evaluate(*rounded, inputs)[0].tensor();
  const std::vector<double> numbers = widen<double>(wanted);
  double largest = 0;
  for (double number : numbers)
    largest = std::max(largest, std::abs(number));
  const std::unique_ptr<Executor> program = compile(graph, in_bf16());
  for (const int threads : {1, 2}) {
    const Tensor got = program->run(inputs, {.seed = 0, .threads = threads})[0].tensor();
    ASSERT_EQ(got.extents(), wanted.extents());
    const std::vector<double> results = widen<double>(got);
    for (size_t i = 0; i < results.size(); ++i)
      ASSERT_NEAR(results[i], numbers[i], 1e-5 * largest) << "element " << i;
  }
}

// Of as many rows, sums and lanes as fill tiles of matrices, and fewer, and more.
TEST(ConvertMatmulToBf16, OfAllSizes) {
  for (const int64_t rows : {1, 2, 3, 7, 11, 15, 16, 17, 32, 33, 50})
    for (const int64_t summed : {2, 30, 32, 96})
      for (const int64_t columns : {5, 12, 20, 32, 48, 70}) {
        if (kIsSanitized && summed != 30)
          continue;
        expect_products(
            *read(fmt::format("graph g(%x: f32[{},{}], %w: f32[{},{}]) {{ %0 = matmul(%x, %w) return %0 }}",
                              rows, summed, summed, columns)),
            1);
      }
}

TEST(ConvertMatmulToBf16, WithWeightsTransposedAndWhatFollows) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[2,n,64], %w1: f32[96,64], %w2: f32[96], %w3: f32[96,32]) {
    %0 = matmul(%x, %w1, transpose_b=true)
    %1 = add(%0, %w2)
    %2 = relu(%1)
    %3 = matmul(%2, %w3)
    return %3
  })");
  for (const int64_t rows : {1, 3, 16, 40})
    expect_products(*graph, 2, {{"n", rows}});
  expect_products(*graph->bind({{"n", Dim(40)}}), 2);
}

TEST(ConvertMatmulToBf16, LeavesAloneWhatHasNoPairsOrNoWeights) {
  for (const char* text :
       {"graph g(%x: f32[20,33], %w: f32[33,40]) { %0 = matmul(%x, %w) return %0 }",
        "graph g(%x: f32[20,32], %y: f32[32,40]) { %0 = matmul(%x, %y) return %0 }",
        "graph g(%x: f64[20,32], %w: f64[32,40]) { %0 = matmul(%x, %w) return %0 }",
        "graph g(%x: f32[3,20,32], %w: f32[3,32,40]) { %0 = matmul(%x, %w) return %0 }",
        "graph g(%x: f32[32,20], %w: f32[32,40]) { %0 = matmul(%x, %w, transpose_a=true) return %0 }"})
    expect_products(*read(text), 0);
}

TEST(ConvertMatmulToBf16, RoundsAFactorOfSeveralProductsOnce) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[20,32], %w1: f32[32,40], %w2: f32[32,50]) {
    %0 = matmul(%x, %w1)
    %1 = matmul(%x, %w2)
    return %0, %1
  })");
  Journal journal;
  convert_matmul_to_bf16(*graph, journal);
  EXPECT_EQ(count_of(*graph, "widening_matmul"), 2);
  EXPECT_EQ(count_of(*graph, "cast"), 3);
}

TEST(ConvertMatmulToBf16, IsNotStrict) {
  CompileContext options = in_bf16();
  options.numerics = NumericsBudget::Strict;
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[20,32], %w: f32[32,40]) { %0 = matmul(%x, %w) return %0 }");
  EXPECT_THROW(compile(*graph, options), UserError);
}

// In tiles, where the machine has them.
TEST(ConvertMatmulToBf16, ByTilesOfMatrices) {
  CompileContext options = in_bf16();
  options.target.matrix_tiles = true;
  options.target.vector_bytes = 64;
  options.target.vector_registers = 32;
  const auto tiles = [&](const char* rows, int64_t summed) {
    const std::unique_ptr<Graph> graph = read(fmt::format(
        "graph g(%x: f32[{},{}], %w: f32[{},64]) {{ %0 = matmul(%x, %w) return %0 }}", rows, summed, summed));
    for (const loops::Kernel& kernel : kernels_of(*graph, options))
      if (has(loops::print(kernel), " tile {"))
        return true;
    return false;
  };
  EXPECT_TRUE(tiles("32", 64));
  EXPECT_TRUE(tiles("17", 32));
  EXPECT_FALSE(tiles("15", 64)) << "too few rows";
  EXPECT_FALSE(tiles("32", 48)) << "a tile would not be filled";
  EXPECT_FALSE(tiles("n", 64)) << "there may be too few rows";
  options.target.matrix_tiles = false;
  options.target.features.clear();
  EXPECT_FALSE(tiles("32", 64));
}

// Two rows and two lanes of two words each are multiplied at a time.
TEST(ConvertMatmulToBf16, ByMatricesInRegisters) {
  CompileContext options = with_matrices_in_registers("+bf16");
  options.precision = MatmulPrecision::BF16;
  const auto kernels = [&](const char* rows, int64_t summed, int64_t columns) {
    return kernels_in(
        *read(fmt::format("graph g(%x: f32[{},{}], %w: f32[{},{}]) {{ %0 = matmul(%x, %w) return %0 }}", rows,
                          summed, summed, columns)),
        options);
  };
  EXPECT_TRUE(has(kernels("40", 64, 64), "for row0 in 0..10 tile {")) << kernels("40", 64, 64);
  EXPECT_TRUE(has(kernels("4", 64, 64), "for row0 in 0..4 tile {"));
  EXPECT_TRUE(has(kernels("3", 4, 4), "for row0 in 0..2 tile {"));
  EXPECT_TRUE(has(kernels("40", 64, 12), "for lane0 in 0..12 vector {")) << "no lane is computed twice";
  EXPECT_FALSE(has(kernels("1", 64, 64), " tile {")) << "too few rows";
  EXPECT_FALSE(has(kernels("40", 66, 64), " tile {")) << "words are not taken one by one";
  EXPECT_FALSE(has(kernels("n", 64, 64), " tile {")) << "there may be too few rows";
  options.target.features = {"+i8mm"};
  EXPECT_FALSE(has(kernels("40", 64, 64), " tile {")) << "which is for bytes";
}

}  // namespace
}  // namespace tenon
