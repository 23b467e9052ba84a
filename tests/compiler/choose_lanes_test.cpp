// Lanes that read elements which lie near each other, in an order that does not change: they are read side by
// side, and each lane takes its own.
#include "compile_here.h"
#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::CompileContext;

namespace {

// Strides, backwards, and behind the last of which nothing is.
TEST(ChooseLanes, OfSlices) {
  for (const char* dtype : {"f32", "u8", "f16", "i64", "bool"})
    for (const auto& [begin, end, step] : {std::tuple{0, 1000, 2},
                                           {1, 1000, 2},
                                           {0, 1000, 3},
                                           {999, -2000, -1},
                                           {998, -2000, -2},
                                           {7, 8, 1},
                                           {3, 900, 31},
                                           {3, 900, 70}})
      expect_as_evaluated(*read(fmt::format(R"(graph(%x: {}[3,1000]) {{
        %b = constant(value=i64[1] {{{}}})
        %e = constant(value=i64[1] {{{}}})
        %s = constant(value=i64[1] {{{}}})
        %0 = slice(%x, %b, %e, %s, axes=[1])
        return %0
      }})",
                                            dtype, begin, end, step)));
}

TEST(ChooseLanes, OfElementsThatAreRepeated) {
  for (const int64_t times : {2, 3, 4, 5, 16, 40})
    for (const int64_t size : {64, 37})
      expect_as_evaluated(*read(fmt::format(R"(graph(%x: f32[3,{0},1], %b: f32[3,{2}]) {{
        %s = constant(value=i64[3] {{3,{0},{1}}})
        %0 = broadcast(%x, %s)
        %t = constant(value=i64[2] {{3,{2}}})
        %1 = reshape(%0, %t)
        %2 = add(%1, %b)
        return %2
      }})",
                                            size, times, size * times)));
}

// Of so many channels that groups fill registers, and that they do not.
TEST(ChooseLanes, OfChannelsInGroups) {
  for (const auto& [channels, own] :
       {std::pair{64, 2}, {64, 4}, {128, 4}, {36, 4}, {40, 4}, {64, 8}, {104, 8}, {96, 3}, {6, 2}})
    for (const int64_t stride : {1, 2})
      expect_as_evaluated(*read(fmt::format(R"(graph(%x: f32[2,{0},9,15], %w: f32[{0},{1},3,3]) {{
        %0 = conv(%x, %w, strides=[{2},{2}], dilations=[1,1], pads=[1,1,1,1], groups={3})
        %1 = relu(%0)
        return %1
      }})",
                                            channels, own, stride, channels / own)));
}

// Where a group has as many filters as a vector has lanes, all of them read the same.
TEST(ChooseLanes, OfOneElement) {
  for (const int64_t filters : {4, 8, 16, 32, 64})
    expect_as_evaluated(*read(fmt::format(R"(graph(%x: f32[2,8,h], %k: f32[8,{0},1], %w: f32[16,{1},3]) {{
        %0 = conv_transpose(%x, %k, strides=[3], dilations=[1], pads=[0,0], output_padding=[0], groups=4)
        %1 = conv(%0, %w, strides=[1], dilations=[1], pads=[1,1], groups=1)
        return %1
      }})",
                                          filters, 4 * filters)),
                        {{"h", 9}});
}

TEST(ChooseLanes, GroupsOfFewChannelsFillARegisterTogether) {
  const auto kernel = [](int64_t channels) {
    CompileContext options = without_cache();
    options.target.vector_bytes = 64;
    options.target.vector_registers = 32;
    return kernels_in(*read(fmt::format(R"(graph(%x: f32[1,{0},14,14], %w: f32[{0},4,3,3]) {{
        %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups={1})
        return %0
      }})",
                                        channels, channels / 4)),
                      options);
  };
  EXPECT_TRUE(has(kernel(128), "4*floor(lane0/4)"));
  EXPECT_FALSE(has(kernel(100), "floor(lane0/4)"));  // the last block would begin within a group
}

}  // namespace
}  // namespace tenon
