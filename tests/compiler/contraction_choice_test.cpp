#include "lowering/contraction_choice.h"

#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "schedule/cpu/contraction_candidates.h"

namespace tenon {

using compiler::CompileContext;
using compiler::FusedKernel;
using compiler::fusion_of;
using lowering::ContractionChoice;
using lowering::ContractionChoices;
using lowering::ContractionKey;
using lowering::Stage;
using schedule::choice_made;
using schedule::contraction_candidates;
using schedule::describe;

namespace {

Target with_wide_vectors() {
  Target target = this_machine();
  target.cores = 2;
  target.matrix_tiles = false;
  return target;
}

CompileContext choosing(const ContractionChoices& choices = {}) {
  CompileContext options = without_cache();
  options.target = with_wide_vectors();
  options.tuning = choices;
  return options;
}

// Those of a graph that can be chosen for.
std::vector<Stage> contractions_in(const Graph& graph, const CompileContext& options) {
  std::vector<Stage> stages;
  for (const FusedKernel& kernel : fusion_of(graph, options).after)
    if (kernel.contraction && kernel.contraction->definition.reduces())
      stages.push_back(*kernel.contraction);
  return stages;
}

Stage only_contraction_in(const Graph& graph, const CompileContext& options) {
  const std::vector<Stage> stages = contractions_in(graph, options);
  CHECK(stages.size() == 1, "there are {} contractions", stages.size());
  return stages.front();
}

ContractionKey key_of(const Graph& graph, const CompileContext& options = choosing()) {
  return only_contraction_in(graph, options).contraction->key;
}

std::string product(int64_t rows, std::string_view names = "x y") {
  const std::string x(names.substr(0, 1)), y(names.substr(2, 1));
  return fmt::format(R"(graph g(%{1}: f32[{0},64], %w1: f32[64,96]) {{
      %{2} = matmul(%{1}, %w1)
      return %{2}
    }})",
                     rows, x, y);
}
std::unique_ptr<Graph> convolution(int64_t channels = 32) {
  return read(fmt::format(R"(graph g(%x: f32[1,{0},21,18], %w1: f32[64,{0},3,3], %w2: f32[64,1,1]) {{
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = add(%0, %w2)
      %2 = relu(%1)
      return %2
    }})",
                          channels));
}

TEST(ContractionKey, DoesNotDependOnNames) {
  EXPECT_EQ(key_of(*read(product(40))), key_of(*read(product(40, "a b"))));
}

TEST(ContractionKey, DependsOnAllThatTimeDependsOn) {
  const ContractionKey key = key_of(*read(product(40)));
  EXPECT_NE(key, key_of(*read(product(41))));
  CompileContext other = choosing();
  other.threads = 1;
  EXPECT_NE(key, key_of(*read(product(40)), other));
  other = choosing();
  other.target.caches.level2 *= 2;
  EXPECT_NE(key, key_of(*read(product(40)), other));
  other = choosing();
  other.numerics = NumericsBudget::Strict;
  EXPECT_NE(key, key_of(*read(product(40)), other));
}

TEST(OtherChoices, OfNoRowsAreNone) {
  const Stage stage = only_contraction_in(*read(product(0)), choosing());
  for (const ContractionChoice& choice : contraction_candidates(stage, with_wide_vectors()))
    EXPECT_FALSE(choice.mr) << describe(choice);
}

// What is chosen is what is made, and what is made computes the same.
void expect_others_right(const Graph& graph, const std::map<std::string, int64_t>& sizes = {}) {
  const Data inputs = inputs_for(graph, sizes);
  const std::vector<double> wanted = widen<double>(evaluate(graph, inputs)[0].tensor());
  double largest = 0;
  for (double each : wanted)
    largest = std::max(largest, std::abs(each));
  const CompileContext options = choosing();
  const Stage stage = only_contraction_in(graph, options);
  const std::vector<ContractionChoice> others = contraction_candidates(stage, options.target);
  EXPECT_FALSE(others.empty());
  EXPECT_LE(others.size(), 12U);
  for (const ContractionChoice& choice : others) {
    EXPECT_NE(choice, choice_made(stage, options.target));
    const CompileContext with = choosing({{stage.contraction->key, choice}});
    ContractionChoice made = choice_made(only_contraction_in(graph, with), with.target);
    if (!choice.mr && !choice.tile_rows)
      made = {.winograd_tile = made.winograd_tile};
    EXPECT_EQ(describe(made), describe(choice));
    const Data got = compile(graph, with)->run(inputs, {.seed = 0, .threads = 2});
    const std::vector<double> numbers = widen<double>(got[0].tensor());
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(numbers[i], wanted[i], 1e-5 * largest) << describe(choice) << ", element " << i;
  }
}

TEST(OtherChoices, OfProductsAreRight) {
  expect_others_right(*read(product(40)));
  expect_others_right(*read(R"(graph g(%x: f32[50,64], %w1: f32[64,768]) {
      %0 = matmul(%x, %w1)
      %1 = relu(%0)
      return %1
    })"));
  expect_others_right(*read(R"(graph g(%x: f32[n,64], %w1: f32[64,160]) {
      %0 = matmul(%x, %w1)
      return %0
    })"),
                      {{"n", 23}});
}

TEST(OtherChoices, OfConvolutionsAreRight) {
  expect_others_right(*convolution());
  expect_others_right(*convolution(3));
  expect_others_right(*read(R"(graph g(%x: f32[2,64,15,15], %w1: f32[64,16,3,3]) {
      %0 = conv(%x, %w1, strides=[2,2], dilations=[1,1], pads=[1,1,1,1], groups=4)
      return %0
    })"));
}

// Numbers that no listing gives, as of a file that somebody wrote, are cut to what fits.
const std::vector<ContractionChoice> kFromAnyone{
    {.mr = 64, .nr = 128, .pack_a = true},
    {.mr = 1},
    {.nr = 48},
    {.winograd_tile = 3, .mr = 7},
    {.winograd_tile = 2, .tile_rows = 1 << 20, .filter_parts = 1 << 20},
    {.winograd_tile = 4, .tile_rows = 2, .filter_parts = 3}};

Tensor run_with(const Graph& graph, const CompileContext& options) {
  return compile(graph, options)->run(inputs_for(graph, {}), {.threads = 2})[0].tensor();
}

void expect_all_near(const Graph& graph, CompileContext options, const Tensor& tensor) {
  const std::vector<double> wanted = widen<double>(tensor);
  const ContractionKey key = key_of(graph, options);
  for (const ContractionChoice& choice : kFromAnyone) {
    options.tuning = {{key, choice}};
    const std::vector<double> numbers = widen<double>(run_with(graph, options));
    ASSERT_EQ(numbers.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(numbers[i], wanted[i], 1e-3) << describe(choice) << ", element " << i;
  }
}

TEST(ContractionChoice, IsRightWhateverItSays) {
  const std::unique_ptr<Graph> graphs[] = {read(product(0)), read(product(5)), read(product(40)),
                                           convolution()};
  for (const std::unique_ptr<Graph>& graph : graphs)
    expect_all_near(*graph, choosing(), evaluate(*graph, inputs_for(*graph, {}))[0].tensor());
}

TEST(ContractionChoice, IsRightForBytesWhateverItSays) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[21,64], %w1: f32[64,96]) {
      %0 = constant(value=f32[] {100.0})
      %1 = add(%x, %x)
      %2 = mul(%1, %1)
      %3 = mul(%2, %0)
      %4 = cast(%3, to=u8)
      %5 = cast(%4, to=i32)
      %6 = mul(%w1, %0)
      %7 = cast(%6, to=i8)
      %8 = cast(%7, to=i32)
      %9 = matmul(%5, %8)
      return %9
    })");
  EXPECT_TRUE(has(kernels_in(*graph), "dot_i8x4(")) << kernels_in(*graph);
  expect_all_near(*graph, choosing(), evaluate(*graph, inputs_for(*graph, {}))[0].tensor());
}

TEST(ContractionChoice, IsRightForPairsWhateverItSays) {
  const std::unique_ptr<Graph> graph = read(product(21));
  CompileContext options = choosing();
  options.precision = MatmulPrecision::BF16;
  expect_all_near(*graph, options, run_with(*graph, options));
}

TEST(ContractionChoice, GivesTheSameBitsUnderStrictNumerics) {
  const std::unique_ptr<Graph> graphs[] = {read(product(40)), convolution()};
  for (const std::unique_ptr<Graph>& graph : graphs) {
    CompileContext options = choosing();
    options.numerics = NumericsBudget::Strict;
    const Tensor wanted = run_with(*graph, options);
    const Stage stage = only_contraction_in(*graph, options);
    std::vector<ContractionChoice> choices = contraction_candidates(stage, options.target);
    choices.insert(choices.end(), kFromAnyone.begin(), kFromAnyone.end());
    for (const ContractionChoice& choice : choices) {
      options.tuning = {{stage.contraction->key, choice}};
      EXPECT_TRUE(identical(run_with(*graph, options), wanted)) << describe(choice);
    }
  }
}

TEST(ContractionChoice, LeavesStrictNumericsAlone) {
  const std::unique_ptr<Graph> graph = convolution();
  CompileContext strict = choosing();
  strict.numerics = NumericsBudget::Strict;
  const Stage stage = only_contraction_in(*graph, strict);
  for (const ContractionChoice& choice : contraction_candidates(stage, strict.target))
    EXPECT_FALSE(choice.winograd_tile) << describe(choice);
  strict.tuning = {{stage.contraction->key, {.winograd_tile = 4}}};
  EXPECT_EQ(only_contraction_in(*graph, strict).winograd_tile, std::nullopt);
}

TEST(ContractionChoice, IsOnlyForTheContractionItIsFor) {
  const std::unique_ptr<Graph> graph = read(product(40));
  const ContractionChoice choice{.mr = 3};
  EXPECT_EQ(
      choice_made(only_contraction_in(*graph, choosing({{key_of(*graph), choice}})), with_wide_vectors()).mr,
      3);
  EXPECT_NE(
      choice_made(only_contraction_in(*graph, choosing({{key_of(*graph) + 1, choice}})), with_wide_vectors())
          .mr,
      3);
}

}  // namespace
}  // namespace tenon
