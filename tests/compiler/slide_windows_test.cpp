// Windows over single channels: a block reads an element once for all of its windows that share a row of it.
#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "sanitized.h"

namespace tenon {

using compiler::CompileContext;

namespace {

// So many vectors of so many bytes.
CompileContext with_vectors(int registers, int bytes) {
  CompileContext options = without_cache();
  options.target.vector_registers = registers;
  options.target.vector_bytes = bytes;
  return options;
}

std::unique_ptr<Graph> windows(int64_t channels, int64_t own, int64_t size, int64_t window,
                               int64_t stride = 1, int64_t dilation = 1) {
  return read(fmt::format(R"(graph(%x: f32[2,{0},{2},{2}], %w: f32[{0},{1},{3},{3}], %w1: f32[{0},1,1]) {{
    %0 = conv(%x, %w, strides=[{4},{4}], dilations=[{5},{5}], pads=[1,1,1,1], groups={6})
    %1 = add(%0, %w1)
    %2 = relu(%1)
    return %2
  }})",
                          channels, own, size, window, stride, dilation, channels / own));
}

TEST(SlideWindows, ComputesAsTheEvaluator) {
  for (const int64_t channels : {33, 64})
    for (const int64_t window : {2, 3, 5, 7, 9, 15})
      for (const int64_t stride : {1, 2, 3})
        for (const int64_t dilation : {1, 2}) {
          if (kIsSanitized && window != 3 && window != 7)
            continue;
          const std::unique_ptr<Graph> graph = windows(channels, 1, 29, window, stride, dilation);
          expect_as_evaluated(*graph);
          expect_as_evaluated(*graph, {}, with_vectors(16, this_machine().vector_bytes));
        }
}

TEST(SlideWindows, AlongSignalsAndVolumes) {
  for (const int64_t window : {2, 4, 9})
    for (const int64_t dilation : {1, 4}) {
      expect_as_evaluated(*read(fmt::format(R"(graph(%x: f32[2,40,61], %w: f32[40,1,{0}]) {{
        %0 = conv(%x, %w, strides=[1], dilations=[{1}], pads=[3,2], groups=40)
        return %0
      }})",
                                            window, dilation)));
      expect_as_evaluated(*read(fmt::format(R"(graph(%x: f32[1,40,5,6,{2}], %w: f32[40,1,3,2,{0}]) {{
        %0 = conv(%x, %w, strides=[1,2,1], dilations=[1,1,{1}], pads=[1,0,2,1,0,2], groups=40)
        return %0
      }})",
                                            window, dilation, 8 * dilation + 9)));
    }
}

// Between convolutions of all channels, so that channels come last; by one pixel, too, which sums nothing up.
TEST(SlideWindows, InLayers) {
  for (const auto& [height, width] : {std::pair{1, 1}, {1, 7}, {5, 1}, {3, 3}})
    for (const int64_t times : {1, 2, 3})
      for (const std::string_view size : {"14", "n"})
        expect_as_evaluated(
            *read(fmt::format(R"(graph(%x: f32[1,8,14,{4}], %w0: f32[24,8,1,1], %w1: f32[{3},1,{0},{1}],
                                       %w2: f32[8,{3},1,1]) {{
          %0 = conv(%x, %w0, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
          %1 = conv(%0, %w1, strides=[1,1], dilations=[1,1], pads=[{2},0,{2},0], groups=24)
          %2 = relu(%1)
          %3 = conv(%2, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
          return %3
        }})",
                              height, width, height / 2, 24 * times, size)),
            {{"n", 14}});
}

// The weights of a row of the window, and sums of as many pixels as there are registers for beside them.
TEST(SlideWindows, BlocksLeaveRegistersForTheWindow) {
  const auto kernel = [](int registers, int bytes, int64_t window) {
    return kernels_in(*windows(64, 1, 16 + window - 3, window), with_vectors(registers, bytes));
  };
  for (const auto& [registers, bytes, window, sums, lanes] : {std::tuple{32, 64, 3, 8, 32},
                                                              {32, 64, 5, 8, 32},
                                                              {32, 64, 7, 8, 32},
                                                              {32, 64, 9, 8, 16},
                                                              {16, 32, 3, 4, 16},
                                                              {16, 32, 5, 8, 8},
                                                              {16, 32, 7, 4, 8},
                                                              {32, 16, 7, 8, 8}}) {
    const std::string text = kernel(registers, bytes, window);
    EXPECT_TRUE(has(text, fmt::format("f32[{},{}] in private", window, lanes))) << text;
    EXPECT_TRUE(has(text, fmt::format("f32[{},{}] in private", sums, lanes))) << text;
  }
}

TEST(SlideWindows, NotWideOnesNorThoseOfPairsOfChannels) {
  const CompileContext options = with_vectors(32, 64);
  EXPECT_FALSE(has(kernels_in(*windows(64, 1, 26, 15), options), "f32[15,"));
  EXPECT_FALSE(has(kernels_in(*windows(64, 2, 14, 5), options), "f32[5,"));
}

}  // namespace
}  // namespace tenon
