#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "sanitized.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::kernels_of;
using runtime::Executor;

namespace {

// However many threads it is cut into iterations for, the same is computed.
TEST(Winograd, GivesTheSameBitsWithAnyThreads) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,256,14,14], %w1: f32[256,256,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        return %0
      })");
  const Data inputs = inputs_for(*graph, {});
  std::optional<Tensor> first;
  for (const int threads : {1, 2, 16, 64}) {
    CompileContext options = without_cache();
    options.threads = threads;
    const Tensor result = compile(*graph, options)->run(inputs).front().tensor();
    if (!first)
      first = result;
    EXPECT_TRUE(std::ranges::equal(result.data<float>(), first->data<float>())) << threads;
  }
}

// With 32 filters and one block there would be one iteration, and the other cores would wait.
TEST(Winograd, KeepsAllCoresBusy) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,128,28,28], %w1: f32[32,128,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        return %0
      })");
  CompileContext options = without_cache();
  options.target.cores = 2;
  options.target.caches.level2 = 2 << 20;
  std::string text;
  for (const loops::Kernel& kernel : kernels_of(*graph, options))
    text += loops::print(kernel);
  EXPECT_TRUE(has(text, "for element0 in 0..")) << text;
  EXPECT_FALSE(has(text, "for block0 in 0..1 ")) << text;
}

// Of an image, its convolution and the padding.
struct Sizes {
  int64_t batch, channels, filters, height, width;
  std::string pads = "1,1,1,1";
};

std::unique_ptr<Graph> convolution(const Sizes& sizes) {
  return read(fmt::format(R"(graph g(%x: f32[{0},{1},{3},{4}], %w1: f32[{2},{1},3,3], %w2: f32[{2},1,1]) {{
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[{5}])
        %1 = add(%0, %w2)
        %2 = relu(%1)
        return %2
      }})",
                          sizes.batch, sizes.channels, sizes.filters, sizes.height, sizes.width, sizes.pads));
}

bool is_in_tiles(const Graph& graph) { return has(kernels_in(graph), "for element0 in 0.."); }

TEST(Winograd, ComputesWhatWindowsAddUpTo) {
  for (const Sizes& sizes : {Sizes{1, 64, 64, 24, 24}, Sizes{1, 64, 64, 23, 30}, Sizes{2, 32, 96, 33, 21},
                             Sizes{1, 64, 48, 40, 17, "0,0,0,0"}, Sizes{1, 32, 64, 29, 29, "1,0,2,1"},
                             Sizes{1, 64, 128, 19, 22}}) {
    const std::unique_ptr<Graph> graph = convolution(sizes);
    EXPECT_TRUE(is_in_tiles(*graph)) << sizes.height << " by " << sizes.width;
    expect_as_evaluated(*graph);
  }
}

TEST(Winograd, GoesOnWithWhatItComputed) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[n,64,18,22], %w1: f32[64,64,3,3], %w2: f32[64,64,3,3], %w3: f32[64,64,1,1]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1 = relu(%0)
        %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %3 = add(%2, %x)
        %4 = relu(%3)
        %5 = conv(%4, %w3, strides=[2,2], dilations=[1,1], pads=[0,0,0,0])
        return %4, %5
      })");
  EXPECT_TRUE(is_in_tiles(*graph));
  for (int64_t batch : {1, 3})
    expect_as_evaluated(*graph, {{"n", batch}});
}

// Windows of several planes, with strides and gaps between these, before the first and after the last.
TEST(Winograd, OfPlanes) {
  for (const char* attributes : {"strides=[1,1,1], dilations=[1,1,1], pads=[1,1,1,1,1,1]",
                                 "strides=[2,1,1], dilations=[1,1,1], pads=[1,1,1,1,1,1]",
                                 "strides=[1,1,1], dilations=[2,1,1], pads=[2,1,1,2,1,1]",
                                 "strides=[1,1,1], dilations=[1,1,1], pads=[0,0,1,1,1,0]",
                                 "strides=[3,1,1], dilations=[2,1,1], pads=[1,0,0,3,2,1]"})
    for (const int64_t planes : {1, 2, 3}) {
      if (kIsSanitized && planes != 2)
        continue;
      const std::unique_ptr<Graph> graph =
          read(fmt::format(R"(graph g(%x: f32[2,64,7,22,24], %w: f32[64,64,{},3,3]) {{
        %0 = conv(%x, %w, {})
        %1 = relu(%0)
        return %1
      }})",
                           planes, attributes));
      EXPECT_TRUE(is_in_tiles(*graph)) << attributes;
      expect_as_evaluated(*graph);
    }
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,32,3,4,12,12], %w: f32[32,32,2,3,3,3]) {
        %0 = conv(%x, %w, strides=[1,1,1,1], dilations=[1,1,1,1], pads=[1,0,1,1,0,1,1,1])
        return %0
      })");
  EXPECT_TRUE(is_in_tiles(*graph));
  expect_as_evaluated(*graph);
}

// Tiles of 4 x 4 err most. By other points than those that were chosen, they would err twice as much.
TEST(Winograd, ErrsByFewMillionths) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,192,64,64], %w: f32[64,192,3,3]) {
        %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        return %0
      })");
  CompileContext options = without_cache();
  options.target = Target();
  options.target.architecture = this_machine().architecture;
  options.target.vector_registers = 32;
  options.target.caches.level2 = 2 << 20;
  options.target.cores = 2;
  ASSERT_TRUE(has(kernels_in(*graph, options), "for element0 in 0..36 {"));
  const Data inputs = inputs_for(*graph, {});
  const std::vector<double> got = widen<double>(compile(*graph, options)->run(inputs)[0].tensor()),
                            wanted = widen<double>(evaluate(*graph, inputs)[0].tensor());
  double largest = 0, error = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    error = std::max(error, std::abs(got[i] - wanted[i]));
  }
  EXPECT_LE(error, 6e-6 * largest);
}

// Together they would fill vectors.
TEST(Winograd, IsLeftAloneWhereThePlanesHaveFewChannels) {
  EXPECT_FALSE(is_in_tiles(*read(R"(graph g(%x: f32[1,10,8,30,30], %w: f32[64,10,8,3,3]) {
        %0 = conv(%x, %w, strides=[1,1,1], dilations=[1,1,1], pads=[0,1,1,0,1,1])
        return %0
      })")));
}

TEST(Winograd, IsLeftAloneWhereItWouldBeAnotherConvolution) {
  for (const char* attributes : {"strides=[2,2], dilations=[1,1], pads=[1,1,1,1], groups=1",
                                 "strides=[1,1], dilations=[2,2], pads=[2,2,2,2], groups=1",
                                 "strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=2"}) {
    const std::unique_ptr<Graph> graph =
        read(fmt::format(R"(graph g(%x: f32[1,64,30,30], %w: f32[64,{},3,3]) {{
          %0 = conv(%x, %w, {}) return %0 }})",
                         has(attributes, "groups=2") ? 32 : 64, attributes));
    EXPECT_FALSE(is_in_tiles(*graph)) << attributes;
    expect_as_evaluated(*graph);
  }
  EXPECT_FALSE(is_in_tiles(*read(R"(graph g(%x: f16[1,64,30,30], %w: f16[64,64,3,3]) {
      %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1]) return %0 })")));
}

// What stands between the image and the product, and costs nothing, is computed in each window.
TEST(Winograd, IsLeftAloneWhereWindowsSeeSomethingElseThanTheImage) {
  for (const char* between :
       {"%a = triangle(%x, upper=true)", "%i = cast(%x, to=i32) %a = cast(%i, to=f32)",
        "%n = constant(value=i64[4] {1,1,1,1}) %v = constant(value=f32[] {-3}) %a = pad(%x, %n, %v, "
        "axes=[2,3])",
        "%b = relu(%x) %s = constant(value=i64[2] {5,3}) %e = constant(value=i64[2] {29,27}) "
        "%a = slice(%b, %s, %e, axes=[2,3])"}) {
    const std::unique_ptr<Graph> graph =
        read(fmt::format(R"(graph g(%x: f32[1,32,28,28], %w: f32[32,32,3,3]) {{
        {} %0 = conv(%a, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1]) return %0 }})",
                         between));
    expect_as_evaluated(*graph);
  }
}

TEST(Winograd, RefusesAnImageOfOtherChannels) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,c,24,24], %w: f32[64,64,3,3]) {
      %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1]) return %0 })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  const Tensor weights = numbers(DType::F32, {64, 64, 3, 3}, 1);
  EXPECT_THROW(program->run({numbers(DType::F32, {1, 32, 24, 24}, 2), weights}), UserError);
  EXPECT_EQ(program->run({numbers(DType::F32, {1, 64, 24, 24}, 2), weights}).size(), 1);
}

TEST(Winograd, IsLeftAloneWithoutChannels) {
  expect_as_evaluated(*read(R"(graph g(%x: f32[1,0,24,24], %w: f32[64,0,3,3]) {
      %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1]) return %0 })"));
}

TEST(Winograd, IsLeftAloneWhereBitsCount) {
  CompileContext options = without_cache();
  options.numerics = NumericsBudget::Strict;
  std::string text;
  for (const loops::Kernel& kernel : kernels_of(*convolution({1, 64, 64, 24, 24}), options))
    text += loops::print(kernel);
  EXPECT_FALSE(has(text, "for element0 in 0.."));
}

}  // namespace
}  // namespace tenon
