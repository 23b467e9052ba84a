// Elements that are read in another order than they are written in: which axis the lanes run along, and that
// it gives the same.
#include "compiler/expect_compiled.h"

namespace tenon {
namespace {

std::string moved(std::string_view dtype, std::string_view sizes, std::string_view permutation) {
  return fmt::format(R"(graph(%x: {}[{}]) {{
    %0 = transpose(%x, permutation=[{}])
    return %0
  }})",
                     dtype, sizes, permutation);
}

bool reads_along(std::string_view sizes, std::string_view permutation, std::string_view loop) {
  return has(kernels_in(*read(moved("f32", sizes, permutation))), loop);
}

TEST(OrderLoops, LanesRunAlongWhatIsReadWhereTheLastAxisIsShort) {
  EXPECT_TRUE(reads_along("2,30,40", "1,2,0", "for r0 in 2048*or0.."));
  EXPECT_TRUE(reads_along("4,2,2,9,33", "0,3,1,4,2", "for r3 in 2048*or3.."));
  EXPECT_FALSE(reads_along("20,30,40", "1,2,0", "for r0 in 2048*or0"));
}

TEST(OrderLoops, ThreadsShareOneLongAxis) {
  EXPECT_TRUE(reads_along("3,100000", "1,0", "for or0 in 0..49 parallel"));
}

TEST(OrderLoops, ShortRowsAreReadInBlocks) {
  EXPECT_TRUE(reads_along("5,100,60,4", "0,2,1,3", "for r2 in 8*or2..min(8*or2+8,100)"));
  EXPECT_FALSE(reads_along("5,100,60,40", "0,2,1,3", "or2"));
  EXPECT_FALSE(reads_along("5,100,60,4", "1,0,2,3", " in 8*"));  // rows of 240 elements
}

// Rows that end in the midst of a cache line would have to be found in each, in 32 MiB and more.
TEST(OrderLoops, ShortRowsAreNotWrittenPastTheCaches) {
  EXPECT_FALSE(reads_along("1024,128,64,4", "0,2,1,3", "streamed"));
  EXPECT_TRUE(reads_along("1024,128,4,64", "0,2,1,3", "streamed"));
}

TEST(OrderLoops, GiveWhatTheEvaluatorDoes) {
  for (const char* dtype : {"f32", "u8", "f16", "i64"})
    for (const auto& [sizes, permutation] : {std::pair{"2,30,41", "1,2,0"},
                                             {"3,5000", "1,0"},
                                             {"3,7,5", "2,1,0"},
                                             {"4,2,2,9,33", "0,3,1,4,2"},
                                             {"3,19,21,4", "0,2,1,3"},
                                             {"3,19,21,5,1", "2,1,0,3,4"},
                                             {"1,9,1", "2,1,0"},
                                             {"0,3,2", "2,0,1"}})
      expect_as_evaluated(*read(moved(dtype, sizes, permutation)));
}

TEST(OrderLoops, GiveWhatTheEvaluatorDoesWithAnySizes) {
  const std::unique_ptr<Graph> graph = read(moved("f32", "2,n,m", "1,2,0"));
  for (const int64_t n : {1, 3, 17, 40})
    expect_as_evaluated(*graph, {{"n", n}, {"m", 2 * n + 1}});
  const std::unique_ptr<Graph> rows = read(moved("f32", "n,m,3", "1,0,2"));
  for (const int64_t n : {1, 3, 17, 40})
    expect_as_evaluated(*rows, {{"n", n}, {"m", 2 * n + 1}});
}

TEST(OrderLoops, OfPixelsThatAreShuffled) {
  const std::unique_ptr<Graph> graph = read(R"(graph(%x: f32[1,12,9,17], %b: f32[3,18,34]) {
    %s = constant(value=i64[6] {1,3,2,2,9,17})
    %0 = reshape(%x, %s)
    %1 = transpose(%0, permutation=[0,1,4,2,5,3])
    %t = constant(value=i64[4] {1,3,18,34})
    %2 = reshape(%1, %t)
    %3 = add(%2, %b)
    %4 = relu(%3)
    return %4
  })");
  expect_as_evaluated(*graph);
}

}  // namespace
}  // namespace tenon
