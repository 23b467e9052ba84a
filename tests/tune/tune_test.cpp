#include "tune/tune.h"

#include <nlohmann/json.hpp>
#include <set>

#include "compiler/expect_compiled.h"
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
  int named = 0;
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  for (Node* node : graph->nodes())
    if (node->is("conv"))
      node->set_sources({fmt::format("node {}", ++named)});
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick());
  ASSERT_EQ(result.contractions.size(), 2U);
  for (const TunedContraction& each : result.contractions) {
    const std::set<std::string> sources(each.sources.begin(), each.sources.end());
    EXPECT_EQ(sources.size(), each.sources.size());
    EXPECT_EQ(sources.contains("node 1"), !sources.contains("node 3"));
    EXPECT_TRUE(sources.contains("node 2") || !sources.contains("node 1"));
    EXPECT_GT(each.seconds_before, 0);
    EXPECT_GT(each.seconds_after, 0);
  }
}

// However little time there is.
TEST(Tune, TriesSomething) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick());
  EXPECT_GE(result.programs, 1);
  EXPECT_EQ(result.contractions.front().tried, 1);
  EXPECT_TRUE(result.dropped.empty());
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

// Windows and tiles round differently, and an integer that a float is cut to shows it.
TEST(Tune, DropsWhatChangesOutputs) {
  const std::unique_ptr<Graph> graph = read(
      R"(graph g(%x: f32[1,32,20,20], %w1: f32[32,32,3,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = constant(value=f32[] {100000.0})
      %2 = mul(%0, %1)
      %3 = cast(%2, to=i32)
      return %3
    })");
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick());
  ASSERT_EQ(result.contractions.size(), 1U);
  EXPECT_EQ(result.contractions.front().tried, 1);
  EXPECT_FALSE(result.contractions.front().is_adopted());
  ASSERT_EQ(result.dropped.size(), 1U);
  EXPECT_EQ(result.dropped.front().sources, result.contractions.front().sources);
  EXPECT_NE(result.dropped.front().choice.winograd_tile, result.contractions.front().before.winograd_tile);
  EXPECT_NE(result.dropped.front().difference, "");
}

// Those of a product are right together with a convolution's that is dropped.
TEST(Tune, DropsNothingElse) {
  const std::unique_ptr<Graph> graph = read(
      R"(graph g(%x: f32[1,32,20,20], %w1: f32[32,32,3,3], %y: f32[400,64], %w2: f32[64,96]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = constant(value=f32[] {100000.0})
      %2 = mul(%0, %1)
      %3 = cast(%2, to=i32)
      %4 = matmul(%y, %w2)
      return %3, %4
    })");
  const TuneResult result = tune(*graph, inputs_for(*graph, {}), quick(2));
  ASSERT_EQ(result.contractions.size(), 2U);
  for (const TunedContraction& each : result.contractions)
    EXPECT_GE(each.tried, 1);
  EXPECT_FALSE(result.dropped.empty());
  for (const DroppedChoice& each : result.dropped)
    EXPECT_TRUE(each.choice.winograd_tile) << each.difference;
}

TEST(Tune, AdoptsNothingThatThereIsNoTimeToConfirm) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  EXPECT_TRUE(tune(*graph, inputs_for(*graph, {}), quick()).adopted().empty());
}

TEST(Tune, TellsWhatItDoes) {
  const std::unique_ptr<Graph> graph = read(kConvolutions);
  TuneOptions options = quick(1);
  std::set<std::string> told;
  options.progress = [&](std::string_view what, double left) {
    told.emplace(what);
    EXPECT_GE(left, 0);
    EXPECT_LE(left, 1);
  };
  tune(*graph, inputs_for(*graph, {}), options);
  for (const char* what : {"compiling", "measuring", "compiling program 1", "comparing program 1"})
    EXPECT_TRUE(told.contains(what)) << what;
}

TEST(PrintTuning, SaysWhatWasAdopted) {
  TuneResult result;
  result.contractions.push_back({.key = 1,
                                 .sources = {"/features/Conv", "/features/Relu"},
                                 .tried = 3,
                                 .before = {.winograd_tile = 0, .mr = 14, .nr = 32},
                                 .after = {.winograd_tile = 4, .tile_rows = 1, .filter_parts = 2},
                                 .seconds_before = 2e-3,
                                 .seconds_after = 1e-3});
  result.contractions.push_back({.key = 2,
                                 .sources = {"/classifier/MatMul"},
                                 .tried = 2,
                                 .before = {.mr = 13, .nr = 32, .pack_a = true},
                                 .after = {.mr = 13, .nr = 32, .pack_a = true},
                                 .seconds_before = 1e-3,
                                 .seconds_after = 1e-3});
  result.seconds_before = 3e-3;
  result.seconds_after = 2e-3;
  result.programs = 4;
  result.runs = 10;
  EXPECT_EQ(print_tuning(result, 2),
            "  before     after  speed-up  contraction\n"
            " 2.00 ms   1.00 ms     2.00x  /features/Conv +1\n"
            "                              direct, tile 14x32 → Winograd 4x4, 1 row x 2 parts\n"
            "1 of 2 contractions adopted, after 4 programs compared with what there was\n"
            "the whole model: 3.00 ms before, 2.00 ms after, 1.50x; each step in the fastest of 10 runs with "
            "2 threads\n");
}

TEST(PrintTuning, SaysWhatWasNotAdoptedAndWhy) {
  TuneResult result;
  result.contractions.emplace_back().sources = {"/features/Conv"};
  result.dropped.push_back(
      {{"/features/Conv", "/features/Relu"}, {.winograd_tile = 4}, "element 3 of y is 1, not 2"});
  result.unconfirmed = 1;
  result.seconds_before = result.seconds_after = 1e-3;
  result.programs = 2;
  result.runs = 5;
  EXPECT_EQ(print_tuning(result, 1),
            "outputs differ with Winograd 4x4, which is dropped, for /features/Conv +1\n"
            "time ran out before 1 choice that looked faster could run again\n"
            "0 of 1 contraction adopted, after 2 programs compared with what there was\n"
            "the whole model: 1.00 ms before, 1.00 ms after, 1.00x; each step in the fastest of 5 runs with "
            "1 thread\n");
  const nlohmann::ordered_json json = tuning_as_json("m.onnx", result, 1);
  EXPECT_EQ(json["unconfirmed"], 1);
  EXPECT_EQ(json["dropped"].dump(),
            R"([{"sources":["/features/Conv","/features/Relu"],"choice":{"winograd_tile":4},)"
            R"("difference":"element 3 of y is 1, not 2"}])");
}

TEST(PrintTuning, BreaksLinesThatAreTooLong) {
  TuneResult result;
  result.contractions.push_back({.key = 1,
                                 .sources = {std::string(200, 'x')},
                                 .tried = 1,
                                 .before = {.winograd_tile = 0, .mr = 14, .nr = 32, .pack_a = true},
                                 .after = {.winograd_tile = 4, .tile_rows = 100000, .filter_parts = 200000},
                                 .seconds_before = 2e-3,
                                 .seconds_after = 1e-3});
  result.seconds_before = result.seconds_after = 1e-3;
  const std::string text = print_tuning(result, 1);
  EXPECT_TRUE(has(text,
                  "                              direct, tile 14x32, packed A\n"
                  "                              → Winograd 4x4, 100000 rows x 200000 parts\n"))
      << text;
  EXPECT_TRUE(has(text, " 2.00 ms   1.00 ms     2.00x  …" + std::string(69, 'x') + "\n")) << text;
}

}  // namespace
}  // namespace tenon
