#include "rewrite/cut.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

// What a slice along the only axis of f32[SIZE] takes, as start:end:step; empty for all of it.
std::string taken(const std::string& size, int64_t start, int64_t end, int64_t step) {
  const auto graph = parse_graph(fmt::format(
      "graph g(%x: f32[{}]) {{ %s = constant(value=i64[1] {{{}}}) %e = constant(value=i64[1] {{{}}}) "
      "%t = constant(value=i64[1] {{{}}}) %y = slice(%x, %s, %e, %t, axes=[-1]) return %y }}",
      size, start, end, step));
  const auto cuts = known_cuts(*graph->outputs().front().node());
  if (!cuts || cuts->empty())
    return "";
  return fmt::format("{}:{}:{}", cuts->front().start, cuts->front().end, cuts->front().step);
}

TEST(Cut, HasBoundsThatArePositions) {
  EXPECT_EQ(taken("6", 0, 6, 1), "");
  EXPECT_EQ(taken("6", -100, 100, 1), "");
  EXPECT_EQ(taken("6", -4, 100, 3), "2:6:3");
  EXPECT_EQ(taken("6", 2, 5, 2), "2:5:2");
  EXPECT_EQ(taken("6", 2, 5, 7), "2:3:1");
  EXPECT_EQ(taken("6", 4, 2, 1), "0:0:1");
  EXPECT_EQ(taken("0", 0, 2, 1), "");
  EXPECT_EQ(taken("6", -1, -100, -1), "5:-7:-1");
  EXPECT_EQ(taken("6", 5, 2, -2), "5:2:-2");
  EXPECT_EQ(taken("6", 5, 4, -2), "5:6:1");
}

TEST(Cut, KeepsBoundsOfUnknownSizes) {
  EXPECT_EQ(taken("n", 0, 2147483647, 1), "");
  EXPECT_EQ(taken("n", 2, 2147483647, 1), "2:9223372036854775807:1");
  EXPECT_EQ(taken("n", -3, -1, 1), "-3:-1:1");
}

TEST(Cut, IsCutAgain) {
  EXPECT_EQ(cut_again({0, 1, 8, 2}, {0, 1, 3, 1}), (Cut{0, 3, 7, 2}));
  EXPECT_EQ(cut_again({0, 1, 4, 1}, {0, 1, 100, 2}), (Cut{0, 2, 4, 2}));
  EXPECT_EQ(cut_again({0, 1, INT64_MAX, 2}, {0, 1, INT64_MAX, 2}), (Cut{0, 3, INT64_MAX, 4}));
  EXPECT_EQ(cut_again({0, -3, 8, 1}, {0, 0, 1, 1}), std::nullopt);
  EXPECT_EQ(cut_again({0, 3, 0, -1}, {0, 0, 1, 1}), std::nullopt);
}

}  // namespace
}  // namespace tenon
