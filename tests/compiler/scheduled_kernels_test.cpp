// Every kernel that graphs are scheduled to, run by the interpreter of loops: for targets by name, on every
// host, so that a fault of a schedule shows as one, and not as a fault of generated code.
#include "base/hash.h"
#include "compiler/expect_compiled.h"
#include "compiler/target_graph.h"
#include "corpora.h"
#include "frontends/builtin/builtin.h"
#include "frontends/read_model.h"
#include "fuzz/expected.h"
#include "fuzz/shrink.h"
#include "ir/print.h"
#include "passes/pipeline.h"
#include "sanitized.h"

namespace tenon {

using compiler::CompileContext;

namespace {

// In elements, as the interpreter takes one after the other.
constexpr int64_t kMostWork = 250'000, kMostRandomWork = 20'000;
constexpr int kRandomGraphs = kIsSanitized ? 10 : 40;

class ScheduledKernels : public testing::TestWithParam<std::string_view> {
 protected:
  ScheduledKernels() { register_ops(); }

  static CompileContext context() { return GetParam() == "here" ? without_cache() : for_target(GetParam()); }
};

// False where it would be more work.
bool expect_interpreted_as_evaluated(const Graph& graph, const Data& inputs, const CompileContext& context,
                                     int64_t most_work = kMostWork) {
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal;
  optimize(*optimised, journal);
  InterpretedGraph interpreted(*optimised, context);
  if (interpreted.work(inputs) > most_work)
    return false;
  RandomGenerator random(0);
  expect_near_evaluated(interpreted.run(inputs, random), evaluate(graph, inputs));
  return true;
}

// One size for every symbol of the inputs.
std::map<std::string, int64_t> all_sizes(const Graph& graph, int64_t size) {
  std::map<std::string, int64_t> sizes;
  for (Value input : graph.inputs())
    for (const std::string& symbol : symbols_of(input.type()))
      sizes.emplace(symbol, size);
  return sizes;
}

TEST_P(ScheduledKernels, OfBuiltInModelsComputeTheSame) {
  int checked = 0;
  for (const builtin::Model& model : builtin::all_models()) {
    SCOPED_TRACE(model.name);
    const std::unique_ptr<Graph> graph = model.make();
    checked +=
        expect_interpreted_as_evaluated(*graph, inputs_for(*graph, all_sizes(*graph, 5)), context()) ? 1 : 0;
  }
  EXPECT_GE(checked, 20);
}

TEST_P(ScheduledKernels, OfModelsOfTheTestsComputeTheSame) {
  for_each_model(models_of_tests(), [&](const std::filesystem::path& model, const std::filesystem::path&) {
    const std::unique_ptr<Graph> graph = read_model(model);
    EXPECT_TRUE(expect_interpreted_as_evaluated(*graph, inputs_for(*graph, {}), context()));
  });
}

// Of sizes that no vector and no tile divides.
TEST_P(ScheduledKernels, OfEachKindComputeTheSame) {
  const char* const kinds[] = {
      R"(graph softmax_of_rows(%x: f32[n,45]) {
        %0 = softmax(%x, axis=-1)
        return %0
      })",
      R"(graph transposed_sum(%x: f32[19,37], %y: f32[37,19]) {
        %0 = transpose(%y, permutation=[1,0])
        %1 = add(%x, %0)
        return %1
      })",
      R"(graph gemm_with_epilogue(%x: f32[n,40], %w1: f32[40,53], %w2: f32[53]) {
        %0 = matmul(%x, %w1)
        %1 = add(%0, %w2)
        %2 = relu(%1)
        return %2
      })",
      R"(graph gemm_of_inputs(%a: f32[2,13,21], %b: f32[2,21,35]) {
        %0 = matmul(%a, %b)
        return %0
      })",
      R"(graph gemm_with_transposed_b(%a: f32[13,21], %b: f32[35,21]) {
        %0 = matmul(%a, %b, transpose_b=true)
        return %0
      })",
      R"(graph gemv(%x: f32[1,70], %w1: f32[70,53]) {
        %0 = matmul(%x, %w1)
        return %0
      })",
      R"(graph gemm_of_f16(%x: f16[13,40], %w1: f16[40,53]) {
        %0 = cast(%x, to=f32)
        %1 = cast(%w1, to=f32)
        %2 = matmul(%0, %1)
        return %2
      })",
      R"(graph strided(%x: f32[1,6,11,13], %w1: f32[18,6,3,3]) {
        %0 = conv(%x, %w1, strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
        return %0
      })",
      R"(graph depthwise_then_pointwise(%x: f32[1,24,9,9], %w1: f32[24,1,3,3], %w2: f32[20,24,1,1]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=24)
        %1 = relu(%0)
        %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        return %2
      })",
      R"(graph bytes(%x: f32[9,36], %w1: f32[36,37]) {
        %h = constant(value=f32[] {127.0})
        %0 = mul(%x, %h)
        %q = cast(%0, to=i8)
        %1 = mul(%w1, %h)
        %w = cast(%1, to=i8)
        %a = cast(%q, to=i32)
        %b = cast(%w, to=i32)
        %y = matmul(%a, %b)
        return %y
      })",
      R"(graph bytes_without_words(%x: f32[9,35], %w1: f32[35,37]) {
        %h = constant(value=f32[] {127.0})
        %0 = mul(%x, %h)
        %1 = add(%0, %h)
        %a = cast(%1, to=u8)
        %2 = mul(%w1, %h)
        %b = cast(%2, to=i8)
        %y = widening_matmul(%a, %b, accumulator=i32)
        return %y
      })",
      R"(graph bf16_in_f32(%x: bf16[9,36], %w1: bf16[36,37]) {
        %y = widening_matmul(%x, %w1, accumulator=f32)
        return %y
      })",
      R"(graph attention(%q: f32[2,n,16], %k: f32[2,n,16], %v: f32[2,n,16]) {
        %0 = matmul(%q, %k, transpose_b=true)
        %1 = softmax(%0, axis=-1)
        %2 = matmul(%1, %v)
        return %2
      })",
  };
  for (const char* text : kinds) {
    const std::unique_ptr<Graph> graph = read(text);
    SCOPED_TRACE(graph->name());
    expect_interpreted_as_evaluated(*graph, inputs_for(*graph, {{"n", 19}}), context(), INT64_MAX);
  }
}

TEST_P(ScheduledKernels, InWinogradsDomainComputeTheSame) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[1,32,13,12], %w1: f32[32,32,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1 = relu(%0)
        return %1
      })");
  CompileContext winograd = context();
  for (const compiler::FusedKernel& kernel : fusion_of(*graph, winograd).after)
    if (kernel.contraction)
      winograd.tuning[kernel.contraction->contraction->key].winograd_tile = 4;
  EXPECT_TRUE(has(kernels_in(*graph, winograd), "for element0 in 0..36"));
  expect_interpreted_as_evaluated(*graph, inputs_for(*graph, {}), winograd, INT64_MAX);
}

// On a target whose cache is so small that the images do not stay there.
TEST(OverlappedTiles, ComputeTheSameAsInterpreted) {
  CompileContext small = for_target("avx512");
  small.threads = 1;
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
  EXPECT_TRUE(has(kernels_in(*graph, small), "for tile0")) << kernels_in(*graph, small);
  if (!kIsSanitized)
    expect_interpreted_as_evaluated(*graph, inputs_for(*graph, {}), small, INT64_MAX);
}

// Rounding to bf16 is what the graph for the target says; the kernels compute that.
TEST_P(ScheduledKernels, OfProductsOfBf16ComputeWhatTheTargetsGraphDoes) {
  CompileContext bf16 = context();
  bf16.precision = MatmulPrecision::BF16;
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[n,40], %w1: f32[40,53]) {
        %0 = matmul(%x, %w1)
        return %0
      })");
  Journal journal;
  const Data inputs = inputs_for(*graph, {{"n", 19}});
  RandomGenerator random(0);
  expect_near_evaluated(InterpretedGraph(*graph, bf16).run(inputs, random),
                        evaluate(*make_target_graph(*graph, bf16, journal), inputs));
}

// What is wrong with how a graph is scheduled, empty where nothing is; nothing where it cannot run, or is too
// much work.
std::optional<std::string> complaint(const Graph& graph, const Data& inputs, const CompileContext& context) {
  std::optional<InterpretedGraph> interpreted;
  std::string error;
  try {
    interpreted.emplace(graph, context);
    if (interpreted->work(inputs) > kMostRandomWork)
      return std::nullopt;
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  std::optional<fuzz::Expected> expected;
  try {
    expected.emplace(graph, inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
  if (!error.empty())
    return error;
  try {
    RandomGenerator random(0);
    return expected->mismatch(interpreted->run(inputs, random));
  } catch (const std::exception& failure) {
    return failure.what();
  }
}

// How many graphs of a seed were checked.
int check_random_graphs(uint64_t seed, const CompileContext& context) {
  fuzz::GrowingGraph random(seed);
  int checked = 0;
  for (const std::unique_ptr<Graph>& graph : fuzz::graphs_of(random)) {
    const Data inputs =
        random.inputs_for(*graph, random.random_sizes(), fuzz::GrowingGraph::Elements::Moderate);
    const std::optional<std::string> found = complaint(*graph, inputs, context);
    checked += found ? 1 : 0;
    if (found.value_or("").empty())
      continue;
    fuzz::Case small{graph->clone(), {inputs}};
    const auto complaint_of = [&](const fuzz::Case& c) {
      return complaint(*c.graph, c.draws.front(), context).value_or("");
    };
    fuzz::shrink(small, [&](const fuzz::Case& c) { return !complaint_of(c).empty(); });
    ADD_FAILURE() << complaint_of(small) << "\n" << print(*small.graph);
  }
  return checked;
}

TEST_P(ScheduledKernels, OfRandomGraphsComputeTheSame) {
  const uint64_t seed = 8;
  int checked = 0;
  for (uint64_t i = 0; checked < kRandomGraphs; ++i) {
    SCOPED_TRACE(i);
    checked += check_random_graphs(hash_combine(seed, i), context());
  }
}

std::string name_of(const testing::TestParamInfo<std::string_view>& info) {
  std::string name(info.param);
  std::ranges::replace(name, '-', '_');
  return name;
}

using Targets = std::vector<std::string_view>;
const Targets kTargets =
    kIsSanitized ? Targets{"amx", "here"} : Targets{"avx2", "avx512", "amx", "neon", "neon-i8mm", "here"};
INSTANTIATE_TEST_SUITE_P(On, ScheduledKernels, testing::ValuesIn(kTargets), name_of);

}  // namespace
}  // namespace tenon
