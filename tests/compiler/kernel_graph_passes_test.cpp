// Kernel graphs of models, as they are lowered and after each pass over them: what they compute, and whether
// their text reads back.
#include "base/hash.h"
#include "compiler/expect_compiled.h"
#include "compiler/fuse_graph.h"
#include "compiler/print_kernel_graph.h"
#include "compiler/target_graph.h"
#include "corpora.h"
#include "frontends/builtin/builtin.h"
#include "frontends/read_model.h"
#include "fuzz/expected.h"
#include "fuzz/shrink.h"
#include "ir/print.h"
#include "lowering/check.h"
#include "lowering/equal.h"
#include "lowering/interpret.h"
#include "lowering/lower_graph.h"
#include "lowering/parse.h"
#include "lowering/print.h"
#include "passes/pipeline.h"
#include "sanitized.h"

namespace tenon {

using compiler::CompileContext;
using compiler::FusedGraph;
using compiler::KernelGraphPass;
using compiler::KernelGraphStage;
using lowering::KernelGraph;

namespace {

// In elements, as the interpreter takes one after the other.
constexpr int64_t kMostWork = 60'000, kMostRandomWork = 10'000;
constexpr int kRandomGraphs = kIsSanitized ? 15 : 60;

class KernelGraphPassesOn : public testing::TestWithParam<std::string_view> {
 protected:
  KernelGraphPassesOn() { register_ops(); }

  static CompileContext context() { return for_target(GetParam()); }
};

// Calls f("lowering", graph) and then f(pass, graph) after each pass.
template <class F>
void for_each_stage(const Graph& target_graph, const CompileContext& context, const F& f) {
  KernelGraph lowered = lowering::lower_graph(target_graph);
  f("lowering", lowered);
  compiler::KernelGraphContext passes = kernel_graph_context(context);
  passes.after_pass = [&](const KernelGraphPass& pass, const KernelGraph& graph) { f(pass.name, graph); };
  const FusedGraph fused(std::move(lowered), passes);
}

// Empty where the text of a kernel graph reads back.
std::string difference_when_read_back(const KernelGraph& graph, const LiteralTable& literals) {
  const std::string text = print(graph);
  const KernelGraph again = lowering::parse_kernel_graph(text, {.literals = &literals});
  if (std::string found = difference(graph, again); !found.empty())
    return found;
  if (const std::vector<std::string> wrong = check(again); !wrong.empty())
    return wrong.front();
  return print(again) == text ? "" : "the text of what was read";
}

// What is wrong with the kernel graphs of a graph, empty where nothing is; and how many of them were run, as
// that may be too much work.
struct Findings {
  std::string complaint;
  int run = 0;
};

Findings check_passes(const Graph& graph, const Data& inputs, const CompileContext& context,
                      int64_t most_work = kMostWork) {
  Journal journal(context.numerics);
  const std::unique_ptr<Graph> target_graph = make_target_graph(graph, context, journal);
  const LiteralTable literals = large_literals(*target_graph);
  Findings findings;
  std::string& found = findings.complaint;
  std::optional<fuzz::Expected> expected;
  for_each_stage(*target_graph, context, [&](std::string_view pass, const KernelGraph& kernels) {
    if (!found.empty())
      return;
    try {
      if (const std::string different = difference_when_read_back(kernels, literals); !different.empty())
        found = fmt::format("after {}, text does not read back: {}", pass, different);
      if (!found.empty() || count_work(kernels, inputs) > most_work)
        return;
      if (!expected)
        expected.emplace(graph, inputs);
      RandomGenerator random(0);
      if (const std::string wrong = expected->mismatch(interpret(kernels, inputs, random)); !wrong.empty())
        found = fmt::format("after {}: {}", pass, wrong);
      ++findings.run;
    } catch (const std::exception& error) {
      found = fmt::format("after {}: {}", pass, error.what());
    }
  });
  return findings;
}

Findings check_passes_of_model(const Graph& graph, const Data& inputs, const CompileContext& context) {
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal;
  optimize(*optimised, journal);
  return check_passes(*optimised, inputs, context);
}

TEST_P(KernelGraphPassesOn, KeepWhatBuiltInModelsCompute) {
  int run = 0;
  for (const builtin::Model& model : builtin::all_models()) {
    SCOPED_TRACE(model.name);
    const std::unique_ptr<Graph> graph = model.make();
    const Findings found =
        check_passes_of_model(*graph, inputs_for(*graph, {{"rows", 5}, {"N", 5}, {"length", 5}}), context());
    EXPECT_EQ(found.complaint, "");
    run += found.run > 0 ? 1 : 0;
  }
  EXPECT_GE(run, 16);
}

TEST_P(KernelGraphPassesOn, KeepWhatModelsOfTheTestsCompute) {
  for_each_model(models_of_tests(), [&](const std::filesystem::path& model, const std::filesystem::path&) {
    const std::unique_ptr<Graph> graph = read_model(model);
    const Findings found = check_passes_of_model(*graph, inputs_for(*graph, {}), context());
    EXPECT_EQ(found.complaint, "");
    EXPECT_GE(found.run, 5);
  });
}

// Whose operands are packed, permuted or transformed.
TEST_P(KernelGraphPassesOn, KeepWhatContractionsCompute) {
  for (const char* text : {
           R"(graph gemm(%x: f32[n,40], %w1: f32[40,53], %w2: f32[53]) {
             %0 = matmul(%x, %w1)
             %1 = add(%0, %w2)
             %2 = relu(%1)
             return %2
           })",
           R"(graph strided(%x: f32[1,6,5,7], %w1: f32[18,6,3,3]) {
             %0 = conv(%x, %w1, strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
             return %0
           })",
           R"(graph depthwise_then_pointwise(%x: f32[1,24,4,5], %w1: f32[24,1,3,3], %w2: f32[20,24,1,1]) {
             %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=24)
             %1 = relu(%0)
             %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
             return %2
           })",
           R"(graph attention(%q: f32[2,n,8], %k: f32[2,n,8], %v: f32[2,n,8]) {
             %0 = matmul(%q, %k, transpose_b=true)
             %1 = softmax(%0, axis=-1)
             %2 = matmul(%1, %v)
             return %2
           })",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    SCOPED_TRACE(graph->name());
    const Data inputs = inputs_for(*graph, {{"n", 5}});
    const Findings found = check_passes(*graph, inputs, context(), INT64_MAX);
    EXPECT_EQ(found.complaint, "");
    EXPECT_GE(found.run, 5);
  }
}

// In words of several factors and, where there are no whole ones, one by one.
TEST_P(KernelGraphPassesOn, KeepWhatNarrowProductsCompute) {
  CompileContext bf16 = context();
  bf16.precision = MatmulPrecision::BF16;
  for (const char* text : {
           R"(graph words_of_bytes(%x: f32[n,12], %w1: f32[12,37]) {
             %h = constant(value=f32[] {127.0})
             %0 = mul(%x, %h)
             %1 = add(%0, %h)
             %2 = cast(%1, to=u8)
             %3 = mul(%w1, %h)
             %4 = cast(%3, to=i8)
             %5 = widening_matmul(%2, %4, accumulator=i32)
             return %5
           })",
           R"(graph bytes(%x: f32[n,7], %w1: f32[7,37]) {
             %h = constant(value=f32[] {127.0})
             %0 = mul(%x, %h)
             %1 = add(%0, %h)
             %2 = cast(%1, to=u8)
             %3 = mul(%w1, %h)
             %4 = cast(%3, to=i8)
             %5 = widening_matmul(%2, %4, accumulator=i32)
             return %5
           })",
           R"(graph words_of_channels(%x: f32[1,8,2,3], %w1: f32[16,4,3,3]) {
             %h = constant(value=f32[] {127.0})
             %0 = mul(%x, %h)
             %1 = add(%0, %h)
             %2 = cast(%1, to=u8)
             %3 = mul(%w1, %h)
             %4 = cast(%3, to=i8)
             %5 = widening_conv(%2, %4, accumulator=i32, pads=[1,1,1,1], groups=2, border=9)
             return %5
           })",
           R"(graph channels(%x: f32[1,3,2,3], %w1: f32[16,3,3,3]) {
             %h = constant(value=f32[] {127.0})
             %0 = mul(%x, %h)
             %1 = add(%0, %h)
             %2 = cast(%1, to=u8)
             %3 = mul(%w1, %h)
             %4 = cast(%3, to=i8)
             %5 = widening_conv(%2, %4, accumulator=i32, pads=[1,1,1,1], border=9)
             return %5
           })",
           R"(graph words_of_bf16(%x: bf16[2,n,8], %w1: bf16[8,37]) {
             %0 = widening_matmul(%x, %w1, accumulator=f32)
             return %0
           })",
           R"(graph bf16(%x: bf16[n,7], %w1: bf16[7,37]) {
             %0 = widening_matmul(%x, %w1, accumulator=f32)
             return %0
           })",
       }) {
    const std::unique_ptr<Graph> graph = read(text);
    SCOPED_TRACE(graph->name());
    const Findings found = check_passes(*graph, inputs_for(*graph, {{"n", 5}}), bf16, INT64_MAX);
    EXPECT_EQ(found.complaint, "");
    EXPECT_GE(found.run, 5);
    EXPECT_EQ(has(print_kernel_graph(*graph, bf16, KernelGraphStage::Select), " dot_"),
              graph->name().starts_with("words"));
  }
}

TEST_P(KernelGraphPassesOn, WithoutFusionKeepWhatIsComputed) {
  CompileContext unfused = context();
  unfused.fuse = false;
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[n,16], %w1: f32[16,53], %w2: f32[53]) {
        %0 = matmul(%x, %w1)
        %1 = add(%0, %w2)
        %2 = softmax(%1, axis=-1)
        return %2
      })");
  EXPECT_EQ(check_passes(*graph, inputs_for(*graph, {{"n", 5}}), unfused).complaint, "");
}

// The same, with this chosen for all contractions.
CompileContext with_choice(const Graph& graph, CompileContext context,
                           const lowering::ContractionChoice& choice) {
  for (const compiler::FusedKernel& kernel : fusion_of(graph, context).after)
    if (kernel.contraction)
      context.tuning[kernel.contraction->contraction->key] = choice;
  return context;
}

TEST(KernelGraphPasses, KeepWhatAWinogradConvolutionComputes) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,16,5,6], %w1: f32[16,16,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1 = relu(%0)
        return %1
      })");
  const CompileContext context = with_choice(*graph, for_target("avx512"), {.winograd_tile = 4});
  EXPECT_TRUE(has(print_kernel_graph(*graph, context, KernelGraphStage::Select), " winograd(4)"));
  EXPECT_EQ(check_passes(*graph, inputs_for(*graph, {}), context, INT64_MAX).complaint, "");
}

TEST(KernelGraphPasses, KeepWhatAProductWithPackedRowsComputes) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[29,16], %w: f32[16,40]) { %0 = matmul(%x, %w) return %0 }");
  const CompileContext context = with_choice(*graph, for_target("avx2"), {.pack_a = true});
  EXPECT_TRUE(has(print_kernel_graph(*graph, context, KernelGraphStage::Select), " packed_a("));
  EXPECT_EQ(check_passes(*graph, inputs_for(*graph, {}), context).complaint, "");
}

TEST(KernelGraphPasses, KeepWhatAProductOfBf16PartsComputes) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[16,64], %w: f32[64,32]) { %0 = matmul(%x, %w) return %0 }");
  const CompileContext context = with_choice(*graph, for_target("amx"), {.bf16x3 = true});
  EXPECT_TRUE(has(print_kernel_graph(*graph, context, KernelGraphStage::Select), " groups 1 split"));
  EXPECT_EQ(check_passes(*graph, inputs_for(*graph, {}), context, INT64_MAX).complaint, "");
}

TEST(KernelGraphPasses, KeepTheTextOfOverlappedTiles) {
  CompileContext small = for_target("avx512");
  small.target.cores = 1;
  small.target.caches = {.level1_data = 32 << 10, .level2 = 256 << 10};
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,8,40,41], %w0: f32[32,8,1,1],
                                                       %w1: f32[32,1,3,3], %w2: f32[8,32,1,1]) {
        %0 = conv(%x, %w0, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        %1 = relu(%0)
        %2 = conv(%1, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=32)
        %3 = relu(%2)
        %4 = conv(%3, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        return %4
      })");
  EXPECT_TRUE(has(print_kernel_graph(*graph, small, KernelGraphStage::Grouped), "kernel tiles of "));
  EXPECT_EQ(check_passes(*graph, inputs_for(*graph, {}), small).complaint, "");
}

TEST_P(KernelGraphPassesOn, KeepWhatRandomGraphsCompute) {
  const uint64_t seed = 12;
  int checked = 0;
  for (uint64_t i = 0; checked < kRandomGraphs; ++i) {
    SCOPED_TRACE(i);
    fuzz::GrowingGraph random(hash_combine(seed, i));
    for (const std::unique_ptr<Graph>& graph : fuzz::graphs_of(random)) {
      const Data inputs =
          random.inputs_for(*graph, random.random_sizes(), fuzz::GrowingGraph::Elements::Moderate);
      try {
        evaluate(*graph, inputs);
      } catch (const UserError&) {
        continue;  // it refuses these inputs
      }
      ++checked;
      EXPECT_EQ(check_passes(*graph, inputs, context(), kMostRandomWork).complaint, "") << print(*graph);
    }
  }
}

const std::vector<std::string_view> kTargets = kIsSanitized
                                                   ? std::vector<std::string_view>{"avx512"}
                                                   : std::vector<std::string_view>{"avx512", "amx", "neon"};
INSTANTIATE_TEST_SUITE_P(Target, KernelGraphPassesOn, testing::ValuesIn(kTargets),
                         [](const testing::TestParamInfo<std::string_view>& info) {
                           return std::string(info.param);
                         });

TEST(PrintKernelGraph, ShowsWhatIsChosenBeforeNodesAreGrouped) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[64,40], %w1: f32[40,64]) {
        %0 = matmul(%x, %w1)
        %1 = relu(%0)
        return %1
      })");
  const CompileContext context = for_target("avx512");
  const std::string selected = print_kernel_graph(*graph, context, KernelGraphStage::Select),
                    grouped = print_kernel_graph(*graph, context, KernelGraphStage::Grouped);
  EXPECT_TRUE(selected.starts_with("kernel graph \"g\" {\n")) << selected;
  EXPECT_TRUE(has(selected, "packed of v2 order [1,0] reduced 1 lanes 64 groups 1")) << selected;
  EXPECT_TRUE(has(selected, "packed_b(v2_panels1x64_1_1_0, 64, 1, 1, true)")) << selected;
  EXPECT_TRUE(grouped.starts_with("fused kernel graph \"g\" {\n")) << grouped;
  EXPECT_TRUE(has(grouped, "  kernel contract of 2 shared axes {\n    define v3_t0_0 for ")) << grouped;
}

}  // namespace
}  // namespace tenon
