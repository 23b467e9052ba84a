#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "schedule/cpu/gemm_tile.h"
#include "schedule/cpu/pack_constant.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using lowering::PackedA;
using lowering::PackedB;
using lowering::PackedBLayout;
using runtime::Executor;
using schedule::empty_packed_b;
using schedule::lanes_of_block;
using schedule::pack_b_panels;

namespace {

TEST(PackedB, HoldConstantsThatProductsRead) {
  for (const char* text : {
           "graph g(%x: f32[40,33], %w: f32[33,70]) { %0 = matmul(%x, %w) return %0 }",
           "graph g(%x: f32[40,33], %w: f32[70,33]) { %0 = matmul(%x, %w, transpose_b=true) return %0 }",
           "graph g(%x: f32[1,33], %w: f32[70,33]) { %0 = matmul(%x, %w, transpose_b=true) return %0 }",
           "graph g(%x: f32[3,20,33], %w: f32[3,33,70]) { %0 = matmul(%x, %w) return %0 }",
           "graph g(%x: f16[40,33], %w: f16[70,33]) { %0 = matmul(%x, %w, transpose_b=true) return %0 }",
           "graph g(%x: f32[2,12,9,9], %w: f32[24,6,3,3]) { %0 = conv(%x, %w, strides=[2,1], "
           "dilations=[1,2], "
           "pads=[1,0,1,2], groups=2) return %0 }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_FALSE(has(kernels_in(*graph), "panel[")) << "nothing is put side by side in a run:\n"
                                                    << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

TEST(PackedB, AreReadByAnyNumberOfRows) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[n,33], %w: f32[70,33], %w2: f32[70,50]) {
    %0 = matmul(%x, %w, transpose_b=true)
    %1 = relu(%0)
    %2 = matmul(%1, %w2)
    return %2
  })");
  for (const int64_t rows : {1, 2, 7, 8, 9, 40})
    expect_as_evaluated(*graph, {{"n", rows}});
}

std::string kernels_with_wide_vectors(const Graph& graph) { return kernels_in(graph, for_target("avx512")); }

// Rows of images that follow each other in memory need not begin blocks of their own.
TEST(PackedB, AreMultipliedWithRowsOfAllAxes) {
  for (const char* text : {
           "graph g(%x: f32[1,40,15,15], %w: f32[96,40,1,1]) { %0 = conv(%x, %w, strides=[1,1], "
           "dilations=[1,1], pads=[0,0,0,0]) %1 = relu(%0) return %1 }",
           "graph g(%x: f32[3,40,5,15], %w: f32[96,40,1,1], %w2: f32[32,96,3,3], %w3: f32[96,1,1]) { %0 = "
           "conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0]) %1 = add(%0, %w3) %2 = relu(%1) %3 "
           "= "
           "conv(%2, %w2, strides=[2,2], dilations=[1,1], pads=[1,1,1,1]) return %3 }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_TRUE(has(kernels_with_wide_vectors(*graph), "floor(")) << kernels_with_wide_vectors(*graph);
    expect_as_evaluated(*graph);
  }
  const std::unique_ptr<Graph> graph = read(
      "graph g(%x: f32[1,40,14,14], %w: f32[96,40,1,1]) { %0 = conv(%x, %w, strides=[2,2], dilations=[1,1], "
      "pads=[0,0,0,0]) return %0 }");
  EXPECT_FALSE(has(kernels_with_wide_vectors(*graph), "floor(")) << "each second one is left out";
  expect_as_evaluated(*graph);
}

TEST(PackedB, AreFetchedWhileTheOneBeforeIsRead) {
  const auto kernels = [](int64_t rows, int64_t depth) {
    return kernels_in(
        *read(fmt::format("graph g(%x: f32[{},{}], %w: f32[{},768]) {{ %0 = matmul(%x, %w) return %0 }}",
                          rows, depth, depth)),
        for_target("avx512"));
  };
  EXPECT_TRUE(has(kernels(64, 512), "prefetch x1[lanes0+1,0,"));
  EXPECT_FALSE(has(kernels(4, 512), "prefetch x1[lanes0+1,0,")) << "they are read once";
  EXPECT_FALSE(has(kernels(1 << 14, 4), "prefetch x1[lanes0+1,0,")) << "they are read for long";
  EXPECT_FALSE(has(kernels(64, 512), "prefetch x0[")) << "rows stay in the cache";
  EXPECT_TRUE(has(kernels(1 << 14, 512), "prefetch x0[")) << "rows do not";
}

CompileContext with_small_cache() {
  CompileContext options = without_cache();
  options.target.architecture = Architecture::X86_64;  // which reads rows from where they lie
  options.target.cores = 2;
  options.target.caches.level2 = 300 << 10;
  return options;
}

// Iterations of a sum are added up for all rows before the next, and what is done with sums waits for the
// last.
TEST(PackedB, BlocksLongReductionsForTheCache) {
  for (const char* text : {
           "graph g(%x: f32[41,1500], %w: f32[1500,256], %w2: f32[256]) { %0 = matmul(%x, %w) %1 = add(%0, "
           "%w2) %2 = relu(%1) return %2 }",
           "graph g(%x: f32[2,29,1500], %w: f32[256,1500]) { %0 = matmul(%x, %w, transpose_b=true) return %0 "
           "}",
           "graph g(%x: f32[n,1500], %w: f32[1500,256]) { %0 = matmul(%x, %w) %1 = relu(%0) return %1 }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_TRUE(has(kernels_in(*graph, with_small_cache()), "for iterations0 in 0..")) << text;
    for (const int64_t rows : {1, 2, 9, 40})
      expect_as_evaluated(*graph, {{"n", rows}}, with_small_cache());
  }
}

TEST(PackedB, AreMultipliedAtOnceWhereSumsAreNotLong) {
  for (const char* text : {
           "graph g(%x: f32[41,100], %w: f32[100,256]) { %0 = matmul(%x, %w) return %0 }",
           "graph g(%x: f32[3,1500], %w: f32[1500,256]) { %0 = matmul(%x, %w) return %0 }",
       })
    EXPECT_FALSE(has(kernels_in(*read(text), with_small_cache()), "iterations0")) << text;
}

// Rows of a channel are other rows than those of the next.
TEST(PackedB, AreOfSingleChannelsToo) {
  CompileContext options = with_small_cache();
  options.target.caches = {.level1_data = 64, .level2 = 1024};
  for (const char* text : {
           "graph g(%x: f32[2,128,8], %w: f32[128,1,4]) { %0 = conv(%x, %w, strides=[4], dilations=[1], "
           "pads=[0,0], groups=128) return %0 }",
           "graph g(%x: f32[1,128,9,16], %w: f32[128,1,1,2]) { %0 = conv(%x, %w, strides=[1,2], "
           "dilations=[1,1], pads=[0,0,0,0], groups=128) return %0 }",
       })
    expect_as_evaluated(*read(text), {}, options);
}

CompileContext with_row_blocks() {
  CompileContext options = without_cache();
  options.target.architecture = Architecture::Arm64;  // which multiplies by elements of a register
  return options;
}

// As many as a block has stand side by side, so that one load brings several.
TEST(PackedA, HoldWhatManyPanelsRead) {
  for (const char* text : {
           "graph g(%x: f32[40,33], %w: f32[33,900]) { %0 = matmul(%x, %w) %1 = relu(%0) return %1 }",
           "graph g(%x: f32[1,61,33], %w: f32[900,33], %w2: f32[33,950]) { %0 = matmul(%x, %w, "
           "transpose_b=true) %1 = matmul(%x, %w2) return %0, %1 }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_TRUE(has(kernels_in(*graph, with_row_blocks()), "[rows0,k0,row0]"))
        << kernels_in(*graph, with_row_blocks());
    expect_as_evaluated(*graph, {}, with_row_blocks());
  }
}

TEST(PackedA, AreNotForFewPanelsOrRows) {
  for (const char* text : {
           "graph g(%x: f32[40,33], %w: f32[33,70]) { %0 = matmul(%x, %w) return %0 }",
           "graph g(%x: f32[4,33], %w: f32[33,900]) { %0 = matmul(%x, %w) return %0 }",
           "graph g(%x: f32[n,33], %w: f32[33,900]) { %0 = matmul(%x, %w) return %0 }",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    EXPECT_FALSE(has(kernels_in(*graph, with_row_blocks()), "[rows0,k0,row0]"))
        << kernels_in(*graph, with_row_blocks());
    expect_as_evaluated(*graph, {{"n", 30}}, with_row_blocks());
  }
}

// Where rows are a multiple of 4096 bytes apart, a tile of them evicts itself from the first cache of x86.
TEST(PackedA, HoldRowsThatEvictEachOther) {
  for (const auto& [length, packs] :
       std::map<int, bool>{{1024, true}, {2048, true}, {768, false}, {1040, false}}) {
    const std::unique_ptr<Graph> graph = read(fmt::format(
        "graph g(%x: f32[40,{0}], %w: f32[{0},900]) {{ %0 = matmul(%x, %w) return %0 }}", length));
    CompileContext options = for_target("avx512");
    options.target.caches.level1_data = 32 << 10;
    const std::string kernels = kernels_in(*graph, options);
    EXPECT_EQ(has(kernels, "[rows0,k0,row0]"), packs) << kernels;
    expect_as_evaluated(*graph);
  }
}

// The same elements along two dimensions are other rows.
TEST(PackedA, AreThoseOfTheDimensionThatIsRead) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[40,40,33], %w: f32[33,900], %w2: f32[33,900]) {
    %zero = constant(value=i64[1] {0})
    %one = constant(value=i64[1] {1})
    %a = slice(%x, %zero, %one, axes=[0])
    %b = slice(%x, %zero, %one, axes=[1])
    %c = squeeze(%a, axes=[0])
    %d = squeeze(%b, axes=[1])
    %0 = matmul(%c, %w)
    %1 = matmul(%d, %w2)
    return %0, %1
  })");
  expect_as_evaluated(*graph, {}, with_row_blocks());
}

// So are they where their axes are in another order.
TEST(PackedA, AreInTheOrderOfTheirAxes) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[9,11,9], %w: f32[9,400], %w2: f32[9,400]) {
    %t = transpose(%x, permutation=[1,0,2])
    %0 = matmul(%x, %w)
    %1 = matmul(%t, %w2)
    return %0, %1
  })");
  InterpretedGraph interpreted(*graph, for_target("neon"));
  const Data inputs = inputs_for(*graph, {});
  RandomGenerator random(0);
  expect_near_evaluated(interpreted.run(inputs, random), evaluate(*graph, inputs));
}

TEST(PackedB, AreMadeOfPiecesThatAreJoined) {
  for (const char* text :
       {"graph g(%x: f32[20,33], %w1: f32[70,33], %w2: f32[5,33], %w3: f32[21,33]) { %w = concat([%w1, %w2, "
        "%w3], "
        "axis=0) %0 = matmul(%x, %w, transpose_b=true) return %0 }",
        "graph g(%x: f32[20,33], %w1: f32[33,70], %w2: f32[33,5], %w3: f32[33,21]) { %w = concat([%w1, %w2, "
        "%w3], "
        "axis=1) %0 = matmul(%x, %w) return %0 }",
        // Along what is summed.
        "graph g(%x: f32[20,33], %w1: f32[30,40], %w2: f32[3,40]) { %w = concat([%w1, %w2], axis=0) %0 = "
        "matmul(%x, %w) return %0 }"})
    expect_as_evaluated(*read(text));
}

TEST(PackedB, LeaveConstantsAsTheyAreForOthers) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[20,64], %i: i64[3], %w: f32[50,64]) {
    %0 = matmul(%x, %w, transpose_b=true)
    %c = constant(value=i64[3] {7, 0, 49})
    %1 = gather(%w, %c, axis=0)
    return %0, %1
  })"));
}

// The weights are held once: in panels. What another reads stays.
TEST(PackedB, TakeTheElementsOfWeightsThatWereComputed) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[20,64], %w1: f32[64], %w: f32[64,48]) {
    %1 = unsqueeze(%w1, axes=[1])
    %2 = mul(%w, %1)
    %3 = matmul(%x, %2)
    return %3
  })");
  const std::unique_ptr<Executor> executor = compile(*graph, here());
  const runtime::Prepare& prepare = executor->program().prepare;
  ASSERT_EQ(prepare.steps.size(), 1);
  EXPECT_TRUE(std::holds_alternative<lowering::PackedWeights>(prepare.steps[0].layout));
  ASSERT_EQ(prepare.weights.size(), 1);
  EXPECT_TRUE(std::holds_alternative<Literal::GivenUp>(prepare.weights[0].literal.form()));
  expect_as_evaluated(*graph);
}

// Of dimensions in one order, but of which more or fewer are summed.
TEST(PackedB, AreSharedOnlyWhereTheyAreEqual) {
  for (const int64_t filters : {32, 64})
    for (const int64_t taps : {16, 32})
      expect_as_evaluated(
          *read(fmt::format(R"(graph g(%x: f32[1,24,40], %y: f32[{0},8,24], %w: f32[{0},24,{1}]) {{
        %0 = conv(%x, %w, strides=[1], dilations=[1], pads=[0,0])
        %1 = matmul(%y, %w)
        return %0, %1
      }})",
                            filters, taps)));
}

TEST(PackedB, AreNotMadeForTooFewLanes) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[40,33], %w: f32[33,3]) { %0 = matmul(%x, %w) return %0 }");
  EXPECT_TRUE(has(kernels_in(*graph), "f32[33,3]")) << kernels_in(*graph);
  expect_as_evaluated(*graph);
}

// Three registers hold what would fill two vectors of two registers by three quarters only.
TEST(PackedB, AreThreeRegistersWideWhereThatFillsThem) {
  const int64_t lanes = lanes_of_block(DType::F32, this_machine());
  const auto product = [](int64_t columns) {
    return read(
        fmt::format("graph g(%x: f32[63,65], %w: f32[65,{}]) {{ %0 = matmul(%x, %w) return %0 }}", columns));
  };
  const auto panels = [&](int64_t count, int64_t width) {
    return fmt::format("f32[{},65,{}]", count, width);
  };
  for (const int64_t count : {1, 3}) {
    const std::unique_ptr<Graph> graph = product(count * lanes / 2 * 3);
    EXPECT_TRUE(has(kernels_in(*graph), panels(count, lanes / 2 * 3))) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
  EXPECT_FALSE(has(kernels_in(*product(3 * lanes)), panels(2, lanes / 2 * 3)));
}

// Filters of a group that fill no whole number of registers: a last panel goes back, but not into the group
// before.
TEST(PackedB, EndWithAGroup) {
  for (const int64_t filters : {6, 12, 23, 30, 60})
    for (const int64_t groups : {2, 3}) {
      const std::unique_ptr<Graph> graph = read(fmt::format(
          "graph g(%x: f32[2,{},7,9], %w: f32[{},6,3,1], %w2: f32[{},1,1]) {{ %0 = conv(%x, %w, "
          "strides=[1,2], dilations=[1,1], pads=[1,0,1,0], groups={}) %1 = add(%0, %w2) return %1 }}",
          6 * groups, filters * groups, filters * groups, groups));
      EXPECT_FALSE(has(kernels_with_wide_vectors(*graph), "floor((lane0"))
          << "lanes have one factor in common:\n"
          << kernels_with_wide_vectors(*graph);
      expect_as_evaluated(*graph);
    }
}

// All lanes of an image have one factor in common, however few there are in a row of it.
TEST(PackedB, RunOverRowsOfSmallImages) {
  const std::unique_ptr<Graph> graph = read(
      "graph g(%x: f32[1,16,28,28], %v: f32[16,16,3,3]) { %0 = conv(%x, %v, strides=[1,1], dilations=[1,1], "
      "pads=[1,1,1,1]) return %0 }");
  EXPECT_FALSE(has(kernels_with_wide_vectors(*graph), "lane0 in 0..16")) << kernels_with_wide_vectors(*graph);
  expect_as_evaluated(*graph);
}

// By weights that only running tells, each group is convolved by itself.
TEST(PackedB, AreOfOneGroupWhereWeightsAreComputed) {
  const auto convolution = [](int64_t channels, int64_t filters, int64_t groups) {
    return read(
        fmt::format("graph g(%x: f32[2,{},7,9], %v: f32[{},{},3,1]) {{ %0 = conv(%x, %v, "
                    "strides=[1,2], dilations=[1,1], pads=[1,0,1,0], groups={}) return %0 }}",
                    channels * groups, filters * groups, channels, groups));
  };
  for (const int64_t groups : {2, 3}) {
    EXPECT_FALSE(has(kernels_in(*convolution(6, 12, groups)), "/12)"));
    expect_as_evaluated(*convolution(6, 12, groups));
    EXPECT_TRUE(has(kernels_in(*convolution(6, 2, groups)), "floor(")) << "too few filters";
    expect_as_evaluated(*convolution(6, 2, groups));
  }
  EXPECT_TRUE(has(kernels_in(*convolution(2, 4, 17)), "floor(")) << "too many groups";
  expect_as_evaluated(*convolution(2, 4, 17));
}

// Weights that would take more memory as they are multiplied stay bytes, of which a group reads a slice.
TEST(PackedB, AreNotOfSlices) {
  expect_as_evaluated(
      *read("graph g(%x: f32[2,24,5,6], %w: u8[44,12,3,3]) { %0 = cast(%w, to=f32) %1 = conv(%x, %0, "
            "strides=[1,1], "
            "dilations=[1,1], pads=[1,1,1,1], groups=2) return %1 }"));
}

// A last panel that goes back into the one before it belongs to that one's iteration: two threads must not
// write the same at once.
TEST(PackedB, AreSharedOutAmongThreads) {
  const auto product = [](std::string_view rows, int64_t columns) {
    return read(fmt::format("graph g(%x: f32[{0},65], %w: f32[65,{1}]) {{ %0 = matmul(%x, %w) return %0 }}",
                            rows, columns));
  };
  EXPECT_TRUE(has(kernels_with_wide_vectors(*product("1", 2000)), "for panel0 in 0.."));
  EXPECT_TRUE(has(kernels_with_wide_vectors(*product("40", 2000)), "for panel0 in 0.."));
  EXPECT_FALSE(has(kernels_with_wide_vectors(*product("40", 2048)), "for panel0 in 0.."));
  for (const std::string_view rows : {"1", "7", "40"})
    for (const int64_t columns : {32, 33, 63, 65, 95, 97, 100, 257})
      expect_as_evaluated(*product(rows, columns));
}

// One panel, and images of which nothing is known: their rows are.
TEST(PackedB, AreSharedOutByRowsOfImagesOfAnySize) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[n,24,h,w], %w: f32[8,24,3,3]) {
    %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
    return %0
  })");
  CompileContext options = without_cache();
  options.threads = 4;
  EXPECT_TRUE(has(kernels_in(*graph, options), "for part0 in 0..")) << kernels_in(*graph, options);
  for (const int64_t size : {1, 3, 16, 33})
    expect_as_evaluated(*graph, {{"n", 2}, {"h", size}, {"w", 10}}, options);
}

// The last panel goes back as far as it must to be whole.
TEST(PackedB, HaveTheirElementsInOrder) {
  for (const int64_t lanes : {4, 8, 16, 32})
    for (const bool transposed : {false, true}) {
      const int64_t columns = 37, iterations = 35;
      const Extents extents = transposed ? Extents{columns, iterations} : Extents{iterations, columns};
      const Tensor matrix = numbers(DType::F32, extents, 5);
      const PackedBLayout order{.order = transposed ? std::vector<size_t>{0, 1} : std::vector<size_t>{1, 0},
                                .reduced = 1,
                                .lanes = lanes};
      Tensor panels = empty_packed_b(DType::F32, extents, order);
      const int64_t count = panels.extents()[0];
      EXPECT_EQ(panels.extents(), (Extents{(columns + lanes - 1) / lanes, iterations, lanes}));
      pack_b_panels(panels, extents, order, matrix, 0, 0, count);
      for (int64_t panel = 0; panel < count; ++panel)
        for (int64_t iteration = 0; iteration < iterations; ++iteration)
          for (int64_t lane = 0; lane < lanes; ++lane) {
            const int64_t column = std::min(panel * lanes, columns - lanes) + lane;
            const auto at = static_cast<size_t>(transposed ? column * iterations + iteration
                                                           : iteration * columns + column);
            ASSERT_EQ(
                panels.data<float>()[static_cast<size_t>((panel * iterations + iteration) * lanes + lane)],
                matrix.data<float>()[at])
                << lanes << " lanes, panel " << panel << ", iteration " << iteration << ", lane " << lane;
          }
    }
}

}  // namespace
}  // namespace tenon
