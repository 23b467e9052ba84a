#include "tune/tune.h"

#include <algorithm>
#include <set>

#include "compiler/expect_compiled.h"
#include "schedule/other_choices.h"
#include "tune/print_tuning.h"

namespace tenon {
namespace {

constexpr const char* kConvolutions =
    R"(graph g(%x: f32[1,32,20,20], %w1: f32[32,32,3,3], %w2: f32[64,32,1,1], %w3: f32[32,32,3,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = conv(%0, %w3, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
      return %2
    })";

TuneOptions quick(double seconds = 0) {
  TuneOptions options{.compile = without_cache(), .seconds = seconds};
  options.compile.threads = 2;
  return options;
}

TEST(Tune, TakesEqualContractionsTogether) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick());
  ASSERT_EQ(result.contractions.size(), 2U);
  std::multiset<size_t> nodes;
  for (const TunedContraction& each : result.contractions) {
    nodes.insert(each.sources.size());
    EXPECT_GT(each.seconds_before, 0);
    EXPECT_GT(each.seconds_after, 0);
  }
  EXPECT_EQ(nodes, (std::multiset<size_t>{1, 2}));
}

// However little time there is. What is tried gives the same results, or it throws.
TEST(Tune, TriesSomething) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick());
  EXPECT_GE(result.programs, 1);
  EXPECT_EQ(result.contractions.front().tried, 1);
  for (const auto& [key, tuned] : result.adopted()) {
    EXPECT_NE(tuned.choice, ContractionChoice());
    EXPECT_GE(tuned.before, 1.03 * tuned.after);
  }
}

TEST(Tune, FindsNothingWhereNothingIsMultiplied) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[64,64]) {
      %0 = exp(%x)
      return %0
    })");
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick(1));
  EXPECT_TRUE(result.contractions.empty());
  EXPECT_TRUE(result.adopted().empty());
  EXPECT_EQ(result.programs, 0);
}

TEST(Tune, KeepsTheUsersErrors) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  EXPECT_THROW(tune(*graph, {}, quick()), UserError);
}

TEST(Tune, TellsHowMuchTimeIsLeft) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  TuneOptions options = quick(1);
  std::set<std::string> told;
  double least = 1;
  options.progress = [&](std::string_view what, double left) {
    told.emplace(what);
    least = std::min(least, left);
  };
  tune(*graph, inputs_for(*graph, {}), options);
  EXPECT_TRUE(told.contains("compiling"));
  EXPECT_TRUE(told.contains("measuring"));
  EXPECT_LT(least, 1);
  EXPECT_GE(least, 0);
}

TEST(PrintTuning, SaysWhatWasAdopted) {
  TuneResult result;
  result.contractions.push_back({.key = 1,
                                 .sources = {"/features/Conv", "/features/Relu"},
                                 .tried = 3,
                                 .before = {.tile = 0, .rows = 14, .vectors = 2},
                                 .after = {.tile = 4, .tile_rows = 1, .filter_parts = 2},
                                 .seconds_before = 2e-3,
                                 .seconds_after = 1e-3});
  result.contractions.push_back({.key = 2,
                                 .sources = {"/classifier/MatMul"},
                                 .tried = 2,
                                 .before = {.rows = 13, .vectors = 2, .row_blocks = true},
                                 .after = {.rows = 13, .vectors = 2, .row_blocks = true},
                                 .seconds_before = 1e-3,
                                 .seconds_after = 1e-3});
  result.seconds_before = 3e-3;
  result.seconds_after = 2e-3;
  result.programs = 4;
  result.runs = 10;
  EXPECT_EQ(print_tuning(result, 2),
            "  before     after  speed-up  contraction\n"
            " 2.00 ms   1.00 ms     2.00x  /features/Conv +1\n"
            "                              windows, 14 rows x 2 vectors → tiles of 4, 1 row x 2 parts\n"
            "1 of 2 contractions adopted, after 4 programs compared with what there was\n"
            "the whole model: 3.00 ms before, 2.00 ms after, 1.50x; each step in the fastest of 10 runs with "
            "2 threads\n");
}

}  // namespace
}  // namespace tenon
