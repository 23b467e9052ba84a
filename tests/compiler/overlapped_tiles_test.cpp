// Kernels that run tile by tile: which do, and that they give the same.
#include <fmt/ranges.h>

#include <array>
#include <random>

#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::kernels_of;

namespace {

// A machine whose cache is so small that the images below do not stay there.
CompileContext small_cache(int threads = 1) {
  CompileContext options = without_cache();
  options.target.caches = {.level1_data = 32 << 10, .level2 = 256 << 10};
  options.target.cores = threads;
  options.threads = threads;
  return options;
}

bool is_in_bands(const Graph& graph, const CompileContext& options = small_cache()) {
  return has(kernels_in(graph, options), "for tile0");
}

std::vector<double> run(const Graph& graph, const CompileContext& options) {
  return widen<double>(compile(graph, options)
                           ->run(inputs_for(graph, {}), {.seed = 0, .threads = options.threads})[0]
                           .tensor());
}

// Where vectors are narrow, computing rows twice takes longer than reading them from memory.
bool pays_to_repeat_rows() { return this_machine().vector_bytes >= 32; }

// The same bits as with a cache in which everything stays, for any number of threads.
void expect_same_in_bands(const Graph& graph) {
  EXPECT_TRUE(is_in_bands(graph) || !pays_to_repeat_rows());
  CompileContext large = small_cache();
  large.target.caches.level2 = 1 << 30;
  ASSERT_FALSE(is_in_bands(graph, large));
  const std::vector<double> wanted = run(graph, large);
  for (const int threads : {1, 2, 5})
    EXPECT_EQ(run(graph, small_cache(threads)), wanted) << threads << " threads";
}

// Along both dimensions: of windows of one pixel, unless it says otherwise.
struct Window {
  int groups = 1;
  std::array<int, 2> strides = {1, 1}, dilations = {1, 1};
  std::array<int, 4> pads = {0, 0, 0, 0};
};

std::string conv(std::string_view operands, const Window& window = {}) {
  return fmt::format("conv({}, strides=[{}], pads=[{}], dilations=[{}], groups={})", operands,
                     fmt::join(window.strides, ","), fmt::join(window.pads, ","),
                     fmt::join(window.dilations, ","), window.groups);
}

const Window kThreeByThree{.groups = 32, .pads = {1, 1, 1, 1}};

// More channels, a window over each, and fewer again.
std::string inverted_block(int images, int size, int window, int stride, int dilation,
                           std::string_view ending = "return %4") {
  const int pad = dilation * (window - 1) / 2;
  const Window own{.groups = 32,
                   .strides = {stride, stride},
                   .dilations = {dilation, dilation},
                   .pads = {pad, pad, pad, pad}};
  return fmt::format(R"(graph(%x: f32[{0},8,{1},{1}], %w0: f32[32,8,1,1], %w1: f32[32,1,{2},{2}],
                              %w2: f32[8,32,1,1]) {{
    %0 = {3}
    %1 = relu(%0)
    %2 = {4}
    %3 = relu(%2)
    %4 = {5}
    {6}
  }})",
                     images, size, window, conv("%x, %w0"), conv("%1, %w1", own), conv("%3, %w2"), ending);
}

TEST(Tiles, HoldWhatKernelsMakeForEachOther) {
  const std::unique_ptr<Graph> graph = read(inverted_block(1, 96, 3, 1, 1));
  if (pays_to_repeat_rows()) {
    EXPECT_EQ(kernels_of(*graph, small_cache()).size(), 3);  // one that reorders the image, tiles, one back
  }
  expect_same_in_bands(*graph);
  expect_as_evaluated(*graph, {}, small_cache());
}

TEST(Tiles, RepeatNothingWithoutWindows) {
  const std::unique_ptr<Graph> graph =
      read(fmt::format(R"(graph(%x: f32[1,8,96,96], %w0: f32[32,8,1,1], %w1: f32[8,32,1,1]) {{
    %0 = {}
    %1 = relu(%0)
    %2 = {}
    return %2
  }})",
                       conv("%x, %w0"), conv("%1, %w1")));
  EXPECT_TRUE(is_in_bands(*graph));
  expect_same_in_bands(*graph);
}

// A matrix times itself: rows of it, and all of them.
TEST(Tiles, AreNotMadeOfWhatIsReadTwice) {
  const std::unique_ptr<Graph> graph = read(R"(graph(%x: f32[64,32], %w: f32[32,4096]) {
    %0 = matmul(%x, %w)
    %1 = relu(%0)
    %2 = matmul(%1, %1, transpose_b=true)
    return %2
  })");
  EXPECT_FALSE(is_in_bands(*graph));
  expect_as_evaluated(*graph, {}, small_cache());
}

TEST(Tiles, OfWindowsOfEveryKind) {
  for (const auto& [size, window, stride, dilation] :
       {std::array{96, 3, 2, 1}, {95, 3, 2, 1}, {96, 5, 1, 1}, {100, 3, 1, 2}, {100, 2, 1, 1}}) {
    SCOPED_TRACE(fmt::format("size {}, window {}, stride {}, dilation {}", size, window, stride, dilation));
    expect_same_in_bands(*read(inverted_block(1, size, window, stride, dilation)));
  }
}

TEST(Tiles, OfSeveralImages) {
  expect_same_in_bands(*read(inverted_block(3, 64, 3, 1, 1)));
  expect_same_in_bands(*read(inverted_block(16, 16, 3, 1, 1)));
}

TEST(Tiles, ReadWhatIsAddedAtTheEnd) {
  expect_same_in_bands(*read(inverted_block(1, 96, 3, 1, 1, "%5 = add(%4, %x) return %5")));
}

// A row of the image, and one that is added to all of them.
TEST(Tiles, ReadABufferInOneWay) {
  const std::unique_ptr<Graph> graph = read(inverted_block(1, 96, 3, 1, 1, R"(
    %b = constant(value=i64[1] {2})
    %e = constant(value=i64[1] {3})
    %5 = slice(%x, %b, %e, axes=[2])
    %6 = add(%4, %x)
    %7 = add(%6, %5)
    return %7)"));
  expect_same_in_bands(*graph);
  expect_as_evaluated(*graph, {}, small_cache());
}

// Two kernels make what a third reads, and others go on with that: they are in the tiles of one of them.
TEST(Tiles, MeetInOneKernel) {
  const std::unique_ptr<Graph> graph = read(fmt::format(
      R"(graph(%x: f32[1,8,96,96], %y: f32[1,8,96,96], %w0: f32[32,8,1,1], %w1: f32[32,32,1,1]) {{
    %0 = {0}
    %1 = relu(%0)
    %2 = {1}
    %3 = relu(%2)
    %4 = {2}
    %5 = relu(%4)
    %6 = {3}
    %7 = add(%6, %5)
    %8 = relu(%7)
    %9 = {4}
    %10 = relu(%9)
    %11 = {5}
    return %11
  }})",
      conv("%x, %w0"), conv("%1, %w1"), conv("%y, %w0"), conv("%3, %w1"), conv("%8, %w1"), conv("%10, %w1")));
  expect_same_in_bands(*graph);
  expect_as_evaluated(*graph, {}, small_cache());
}

// Their result has a border, for a window reads it.
TEST(Tiles, HaveABorderAround) {
  expect_same_in_bands(*read(fmt::format(
      R"(graph(%x: f32[1,8,96,96], %w0: f32[32,8,1,1], %w1: f32[32,1,3,3], %w2: f32[32,1,3,3]) {{
    %0 = {}
    %1 = {}
    %2 = {}
    %3 = {}
    return %2, %3
  }})",
      conv("%x, %w0"), conv("%0, %w1", {.groups = 32, .strides = {2, 2}, .pads = {1, 1, 1, 1}}),
      conv("%1, %w1", kThreeByThree), conv("%1, %w2", kThreeByThree))));
}

TEST(Tiles, AreNotMadeOfWhatStaysInCache) {
  CompileContext options = small_cache();
  EXPECT_FALSE(is_in_bands(*read(inverted_block(1, 24, 3, 1, 1)), options));
  options.target.caches.level2 = 8 << 20;
  EXPECT_FALSE(is_in_bands(*read(inverted_block(1, 96, 3, 1, 1)), options));
}

TEST(Tiles, AreNotMadeOfWhatOthersRead) {
  const std::unique_ptr<Graph> graph =
      read(fmt::format(R"(graph(%x: f32[1,8,96,96], %w0: f32[32,8,1,1], %w1: f32[32,1,3,3]) {{
    %0 = {}
    %1 = {}
    return %1, %0
  }})",
                       conv("%x, %w0"), conv("%0, %w1", kThreeByThree)));
  EXPECT_FALSE(is_in_bands(*graph));
  expect_as_evaluated(*graph, {}, small_cache());
}

TEST(Tiles, AreNotMadeOfWholeImages) {
  const std::unique_ptr<Graph> graph = read(fmt::format(R"(graph(%x: f32[1,8,96,96], %w0: f32[32,8,1,1]) {{
    %0 = {}
    %1 = reduce_mean(%0, axes=[2,3], keep_dims=true)
    return %1
  }})",
                                                        conv("%x, %w0")));
  EXPECT_FALSE(is_in_bands(*graph));
  expect_as_evaluated(*graph, {}, small_cache());
}

TEST(Tiles, AreOfKnownSizes) {
  EXPECT_FALSE(
      is_in_bands(*read(fmt::format(R"(graph(%x: f32[1,8,n,n], %w0: f32[32,8,1,1], %w1: f32[32,1,3,3]) {{
    %0 = {}
    %1 = {}
    return %1
  }})",
                                    conv("%x, %w0"), conv("%0, %w1", kThreeByThree)))));
}

TEST(Tiles, GiveTheSameForRandomChains) {
  std::mt19937 random(7);
  const auto pick = [&](int least, int most) { return std::uniform_int_distribution(least, most)(random); };
  int in_bands = 0;
  for (int i = 0; i < 6; ++i) {
    const int size = pick(60, 110), channels = 4 * pick(2, 12);
    std::string inputs = fmt::format("%x: f32[{},{},{},{}]", pick(1, 2), channels, size, size + pick(0, 5)),
                body;
    std::string last = "x";
    for (int layer = 0, made = channels; layer < 3; ++layer) {
      const bool is_window = pick(0, 1) == 1;
      const int rows = is_window ? pick(2, 5) : 1, columns = is_window ? pick(2, 5) : 1, read = made;
      made = is_window ? made : 4 * pick(2, 12);
      inputs += fmt::format(", %w{}: f32[{},{},{},{}]", layer, made, is_window ? 1 : read, rows, columns);
      const Window window{
          .groups = is_window ? read : 1,
          .strides = {is_window ? pick(1, 3) : 1, is_window ? pick(1, 2) : 1},
          .pads = {pick(0, rows - 1), pick(0, columns - 1), pick(0, rows - 1), pick(0, columns - 1)}};
      body += fmt::format("%{} = {}\n", layer, conv(fmt::format("%{}, %w{}", last, layer), window));
      last = std::to_string(layer);
    }
    const std::unique_ptr<Graph> graph =
        read(fmt::format("graph({}) {{ {} return %{} }}", inputs, body, last));
    SCOPED_TRACE(body + inputs);
    in_bands += is_in_bands(*graph) ? 1 : 0;
    CompileContext large = small_cache();
    large.target.caches.level2 = 1 << 30;
    const std::vector<double> wanted = run(*graph, large);
    for (const int threads : {1, 3})
      EXPECT_EQ(run(*graph, small_cache(threads)), wanted);
  }
  if (pays_to_repeat_rows()) {
    EXPECT_GE(in_bands, 2);
  }
}

}  // namespace
}  // namespace tenon
