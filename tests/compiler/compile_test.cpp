#include "compiler/compile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "compile_here.h"
#include "ir/parse.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/registry.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::fusion_of;
using runtime::Executor;
using runtime::Home;
using runtime::HostStep;
using runtime::KernelStep;
using runtime::Slot;
using runtime::Step;

namespace {

std::unique_ptr<Graph> read(std::string_view text) {
  register_ops();
  return parse(text);
}

// Pseudo-random numbers between -2 and 2.
Tensor numbers(const Extents& extents, uint64_t seed) {
  Tensor tensor(DType::F32, extents);
  for (float& value : tensor.mutable_data<float>()) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    value = static_cast<float>(seed >> 40) / (1 << 22) - 2;
  }
  return tensor;
}

void expect_close(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.extents(), wanted.extents());
  const std::vector<double> a = widen<double>(got), b = widen<double>(wanted);
  double largest = 0;
  for (double each : b)
    largest = std::max(largest, std::abs(each));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), 1e-5 * largest) << "element " << i;  // NaN is not
}

int64_t count_kernels(const Executor& program) {
  int64_t kernels = 0;
  for (const Step& step : program.program().steps) {
    EXPECT_FALSE(std::holds_alternative<HostStep>(step));
    kernels += std::holds_alternative<KernelStep>(step) ? 1 : 0;
  }
  return kernels;
}

int64_t count_intermediates(const Executor& program) {
  int64_t count = 0;
  for (const Step& step : program.program().steps)
    if (const auto* kernel = std::get_if<KernelStep>(&step))
      for (size_t slot : kernel->writes)
        count += program.program().slots[slot].home == Home::Output ? 0 : 1;
  return count;
}

CompileContext without_cache() {
  CompileContext options = here();
  options.cache = std::nullopt;
  return options;
}

struct Case {
  std::string name, text;
  std::vector<Extents> inputs;
  int64_t kernels;
};

class CompileTest : public testing::TestWithParam<Case> {};

TEST_P(CompileTest, GivesWhatTheReferenceGivesInAsManyKernels) {
  const Case& each = GetParam();
  const std::unique_ptr<Graph> graph = read(each.text);
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  EXPECT_EQ(count_kernels(*program), each.kernels);
  if (each.kernels == 1) {
    EXPECT_EQ(count_intermediates(*program), 0);
  }
  Data inputs;
  for (size_t i = 0; i < each.inputs.size(); ++i)
    inputs.emplace_back(numbers(each.inputs[i], i + 1));
  for (int threads : {1, 2})
    expect_close(program->run(inputs, {.seed = 0, .threads = threads}).front().tensor(),
                 evaluate(*graph, inputs).front().tensor());
}

INSTANTIATE_TEST_SUITE_P(Graphs, CompileTest,
                         testing::Values(Case{"Chain",
                                              R"(graph g(%x: f32[64,300], %b: f32[300]) {
               %0 = mul(%x, %x)
               %1 = add(%0, %b)
               %2 = relu(%1)
               %3 = sigmoid(%2)
               return %3
             })",
                                              {{64, 300}, {300}},
                                              1},
                                         Case{"Softmax",
                                              R"(graph g(%x: f32[37,129]) {
               %0 = softmax(%x, axis=-1)
               return %0
             })",
                                              {{37, 129}},
                                              1},
                                         Case{"LayerNorm",
                                              R"(graph g(%x: f32[33,200], %s: f32[200], %b: f32[200]) {
               %0 = layer_norm(%x, %s, %b, axis=-1, epsilon=1e-05)
               return %0
             })",
                                              {{33, 200}, {200}, {200}},
                                              1},
                                         Case{"ScalesOfBlocksInAProduct",
                                              R"(graph g(%x: f32[1,64], %s: f32[9,4]) {
               %w = constant(value=u4[9,64] splat 11)
               %z = constant(value=u4[9,4] splat 8)
               %0 = dequantize(%w, %s, %z, to=f32, block_size=16)
               %1 = matmul(%x, %0, transpose_b=true)
               return %1
             })",
                                              {{1, 64}, {9, 4}},
                                              1},
                                         Case{"MatmulBiasRelu",
                                              R"(graph g(%x: f32[19,70], %w: f32[70,45], %b: f32[45]) {
               %0 = matmul(%x, %w)
               %1 = add(%0, %b)
               %2 = relu(%1)
               return %2
             })",
                                              {{19, 70}, {70, 45}, {45}},
                                              1},
                                         Case{"SymbolicRows",
                                              R"(graph g(%x: f32[n,64], %w: f32[64,48]) {
               %0 = matmul(%x, %w)
               %1 = softmax(%0, axis=-1)
               return %1
             })",
                                              {{13, 64}, {64, 48}},
                                              2},
                                         Case{"ColumnSums",
                                              R"(graph g(%x: f32[100,70]) {
               %0 = reduce_sum(%x, axes=[0], keep_dims=false)
               return %0
             })",
                                              {{100, 70}},
                                              1},
                                         Case{"PaddedConvolution",
                                              R"(graph g(%x: f32[2,3,17,19], %w: f32[8,3,3,3]) {
               %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1, padding="explicit")
               %1 = relu(%0)
               return %1
             })",
                                              {{2, 3, 17, 19}, {8, 3, 3, 3}},
                                              1}),
                         [](const testing::TestParamInfo<Case>& info) { return info.param.name; });

TEST(Program, RefusesInputsThatDoNotFitAndRunsOn) {
  const std::unique_ptr<Graph> graph = read("graph g(%x: f32[4]) { %0 = exp(%x) return %0 }");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  const auto message = [&](const Data& inputs) -> std::string {
    try {
      program->run(inputs);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({numbers({5}, 1)}), "input x must be f32[4], but is f32[5]");
  EXPECT_EQ(message({Tensor(DType::I64, {4})}), "input x must be f32[4], but is i64[4]");
  EXPECT_EQ(message({numbers({4, 1}, 1)}), "input x must be f32[4], but is f32[4,1]");
  EXPECT_EQ(message({}), "graph g takes 1 inputs, but 0 were given");
  EXPECT_EQ(message({numbers({4}, 1), numbers({4}, 1)}), "graph g takes 1 inputs, but 2 were given");
  EXPECT_EQ(message({Sequence{}}), "input x must be f32[4], but is seq<f32[*]>");
  const Data inputs{numbers({4}, 1)};
  expect_close(program->run(inputs).front().tensor(), evaluate(*graph, inputs).front().tensor());
}

TEST(Program, FailsWhereAnIndexIsOutOfRange) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[4], %i: i64[3]) {
      %0 = gather(%x, %i, axis=0)
      return %0
    })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  EXPECT_THROW(program->run({numbers({4}, 1), Tensor::of(std::vector<int64_t>{0, 4, 1})}), UserError);
  const Data inputs{numbers({4}, 1), Tensor::of(std::vector<int64_t>{0, -1, 3})};
  EXPECT_TRUE(identical(program->run(inputs).front().tensor(), evaluate(*graph, inputs).front().tensor()));
}

TEST(Program, RunsIntoMemoryOfTheCaller) {
  const std::unique_ptr<Graph> graph = read("graph g(%x: f32[n,2]) { %0 = neg(%x) return %0 }");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (int64_t n : {3, 1}) {
    const Data inputs{numbers({n, 2}, 1)};
    EXPECT_EQ(program->output_extents(inputs), (std::vector<Extents>{{n, 2}}));
    Tensor y(DType::F32, {n, 2});
    void* const memory = y.mutable_bytes().data();
    program->run_into(inputs, {&memory, 1});
    EXPECT_TRUE(identical(y, evaluate(*graph, inputs).front().tensor()));
  }
  const auto open = compile(*read("graph g(%x: f32[n]) { %0 = nonzero(%x) return %0 }"), without_cache());
  EXPECT_EQ(open->output_extents({numbers({3}, 1)}), std::nullopt);
}

TEST(Program, TellsOfEachStepInTurn) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[4]) {
      %0 = exp(%x)
      %1 = nonzero(%0)
      return %0, %1
    })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  ASSERT_EQ(program->program().steps.size(), 2);
  std::vector<size_t> steps;
  const std::function<void(size_t)> note = [&](size_t step) { steps.push_back(step); };
  int beginnings = 0;
  const std::function<void()> begin = [&] {
    EXPECT_EQ(steps.size(), 0);
    ++beginnings;
  };
  program->run({numbers({4}, 1)}, {.before_steps = &begin, .after_step = &note});
  EXPECT_EQ(steps, (std::vector<size_t>{0, 1}));
  program->run({numbers({4}, 1)});
  EXPECT_EQ(steps.size(), 2);  // nobody listens any more
  EXPECT_EQ(beginnings, 1);
}

TEST(Program, RunsForSeveralCallersAndSizesAtOnce) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[n,8], %w: f32[8,8]) {
      %0 = matmul(%x, %w)
      %1 = softmax(%0, axis=-1)
      return %1
    })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  std::vector<std::thread> callers;
  for (int64_t caller = 1; caller <= 2; ++caller)
    callers.emplace_back([&, caller] {
      for (int64_t n = 1; n <= 20; ++n) {
        const Data inputs{numbers({n * caller, 8}, static_cast<uint64_t>(n)), numbers({8, 8}, 5)};
        expect_close(program->run(inputs, {.seed = 0, .threads = 2}).front().tensor(),
                     evaluate(*graph, inputs).front().tensor());
      }
    });
  for (std::thread& caller : callers)
    caller.join();
}

// Blocks of lanes are as wide as fits, and the last may overlap the one before.
TEST(Program, MultipliesMatricesOfAnySize) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[2,n,5], %y: f32[2,5,m], %b: f32[m]) {
      %0 = matmul(%x, %y)
      %1 = add(%0, %b)
      %2 = relu(%1)
      return %2
    })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (int64_t n : {1, 2, 8, 11})
    for (int64_t m : {0, 1, 3, 4, 7, 8, 9, 31, 32, 33, 63, 64, 70}) {
      SCOPED_TRACE(fmt::format("{} rows of {}", n, m));
      const Data inputs{numbers({2, n, 5}, 1), numbers({2, 5, m}, 2), numbers({m}, 3)};
      expect_close(program->run(inputs, {.seed = 0, .threads = 2}).front().tensor(),
                   evaluate(*graph, inputs).front().tensor());
    }
}

TEST(Program, ConvolvesImagesOfAnySize) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[n,3,h,w], %k: f32[9,3,3,3]) {
      %0 = conv(%x, %k, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      return %0
    })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (int64_t size : {1, 2, 7, 8, 33}) {
    const Data inputs{numbers({2, 3, 3, size}, 1), numbers({9, 3, 3, 3}, 2)};
    expect_close(program->run(inputs).front().tensor(), evaluate(*graph, inputs).front().tensor());
  }
}

// Where lanes are not known, no block may be wider than they are, and rows share what is read.
TEST(Compile, BlocksLanesOfAnyNumber) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[2,6,5], %y: f32[2,5,m]) { %0 = matmul(%x, %y) return %0 }");
  CompileContext options = without_cache();
  options.target.vector_bytes = 32;
  options.target.vector_registers = 16;
  const std::string text = loops::print(kernels_of(*graph, options).front());
  for (const char* part : {"if n0-16 >= 0 {", "if 15-n0 >= 0 and n0-4 >= 0 {", "if 3-n0 >= 0 and n0-1 >= 0 {",
                           "for row0 in 0..6 unrolled {"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

// A block of rows for a single one would mostly compute what nobody needs.
TEST(Compile, TakesARowByItselfWhereRunningTellsHowManyThereAre) {
  const auto count_loops_over_rows = [](std::string_view rows) {
    const std::unique_ptr<Graph> graph = read(
        fmt::format("graph g(%x: f32[{},16], %w: f32[16,32]) {{ %0 = matmul(%x, %w) return %0 }}", rows));
    const std::string text = loops::print(kernels_of(*graph, without_cache()).front());
    int64_t count = 0;
    for (size_t at = text.find("for rows0 "); at != std::string::npos; at = text.find("for rows0 ", at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(count_loops_over_rows("n"), 2);
  EXPECT_EQ(count_loops_over_rows("9"), 1);
}

// While a row that came from memory is written there, the next one is fetched.
TEST(Compile, FetchesTheNextRowWhereResultsPassTheCaches) {
  const auto fetched = [](std::string_view text) {
    CompileContext options = without_cache();
    options.target.caches.level2 = 1 << 20;
    std::vector<std::string> all;
    for (const loops::Kernel& kernel : kernels_of(*read(text), options)) {
      const std::string printed = loops::print(kernel);
      for (size_t at = printed.find("prefetch "); at != std::string::npos;
           at = printed.find("prefetch ", at + 1))
        all.push_back(printed.substr(at, printed.find('\n', at) - at));
    }
    return all;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(fetched("graph g(%x: f32[4096,4096]) { %0 = softmax(%x, axis=1) return %0 }"),
            Texts{"prefetch x0[r0+1,s3i1]"});
  EXPECT_EQ(fetched("graph g(%x: f32[4,1024,4096], %y: f32[4,1024,4096]) {"
                    "  %0 = add(%x, %y) %1 = softmax(%0, axis=2) return %1 }"),
            (Texts{"prefetch x0[r0,r1+1,s3i2]", "prefetch x1[r0,r1+1,s3i2]"}));
  // What stays in caches, what is read in one pass, and rows so long that the next would push this one out.
  EXPECT_EQ(fetched("graph g(%x: f32[64,4096]) { %0 = softmax(%x, axis=1) return %0 }"), Texts{});
  EXPECT_EQ(fetched("graph g(%x: f32[4096,4096]) { %0 = exp(%x) return %0 }"), Texts{});
  EXPECT_EQ(fetched("graph g(%x: f32[64,262144]) { %0 = softmax(%x, axis=1) return %0 }"), Texts{});
}

// What several rows share is put side by side first, unless there is but one.
TEST(Compile, PacksNothingForASingleRow) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[n,16], %w: f32[16,32]) { %0 = matmul(%x, %w) return %0 }");
  const std::string text = loops::print(kernels_of(*graph, without_cache()).front());
  EXPECT_NE(text.find("if n0-2 >= 0 {\n      for k0 in 0..16 {"), std::string::npos) << text;
  EXPECT_NE(text.rfind("= x1["), text.find("= x1[")) << text;  // the single row reads it once more
}

// How much there is to do is a longer formula than sizes may be.
TEST(Compile, TakesProductsWhoseSizesOnlyRunningTells) {
  const std::unique_ptr<Graph> graph =
      read("graph g(%x: f32[m,n]) { %0 = matmul(%x, %x, transpose_a=true) return %0 }");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  for (const Extents& extents :
       {Extents{5, 70}, Extents{3, 9}, Extents{1, 1}, Extents{0, 2}, Extents{2, 0}}) {
    const Data inputs{numbers(extents, 1)};
    expect_close(program->run(inputs, {.threads = 2}).front().tensor(),
                 evaluate(*graph, inputs).front().tensor());
  }
}

TEST(Compile, TakesProductsWhoseRankOnlyRunningTells) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[2,3], %s: i64[n]) {
      %r = reshape(%x, %s)
      %e = exp(%r)
      %y = matmul(%r, %e, transpose_b=true)
      return %y
    })");
  const Data inputs{numbers({2, 3}, 1), Tensor::of(std::vector<int64_t>{3, 2})};
  expect_close(compile(*graph, without_cache())->run(inputs).front().tensor(),
               evaluate(*graph, inputs).front().tensor());
}

TEST(Compile, MakesOneKernelOfEqualOnes) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[16,16], %w: f32[16,16], %v: f32[16,16]) {
      %0 = matmul(%x, %w)
      %1 = matmul(%0, %v)
      return %1
    })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  EXPECT_EQ(program->program().steps.size(), 2u);
  EXPECT_EQ(program->program().code.size(), 1u);
}

// Products and convolutions whose rows, columns and images fill no blocks: lanes go back at the end, run over
// rows of an image and beyond, and threads take parts of the channels.
TEST(Compile, FillsNoBlocks) {
  struct Sizes {
    std::string x, w, attributes;
  };
  for (const auto& [x, w, attributes] :
       {Sizes{"1,20,7,7", "33,20,3,3", "strides=[1,1], pads=[1,1,1,1], groups=1"},
        {"1,20,7,7", "64,20,1,1", "strides=[1,1], pads=[0,0,0,0], groups=1"},
        {"2,6,14,9", "40,3,3,2", "strides=[2,1], pads=[1,0,0,1], groups=2"},
        {"1,5,13,13", "17,5,3,3", "strides=[2,2], pads=[0,0,0,0], groups=1"},
        {"1,3,40,40", "24,3,5,5", "strides=[1,1], pads=[2,2,2,2], groups=1"},
        {"3,4,6,5", "9,4,6,5", "strides=[1,1], pads=[0,0,0,0], groups=1"}}) {
    const std::unique_ptr<Graph> graph = read(fmt::format(
        R"(graph g(%x: f32[{}], %w: f32[{}]) {{
          %0 = conv(%x, %w, {}, dilations=[1,1], padding="explicit")
          %1 = relu(%0)
          return %1
        }})",
        x, w, attributes));
    Data inputs;
    for (Value input : graph->inputs())
      inputs.emplace_back(numbers(*input.shape().extents(), inputs.size() + 1));
    const std::unique_ptr<Executor> program = compile(*graph, without_cache());
    const Tensor wanted = evaluate(*graph, inputs).front().tensor();
    for (const int threads : {1, 3})
      expect_close(program->run(inputs, {.seed = 0, .threads = threads}).front().tensor(), wanted);
  }
}

// Whatever a size is called: kernels have names of their own for loops and buffers.
TEST(Compile, TakesSizesOfAnyName) {
  for (const char* size : {"rows", "row", "lanes", "lane", "part", "panel", "none", "r0", "r0o", "or0",
                           "ps0k0", "i0", "k0", "n0", "x0", "rows0", "lanes0", "sums0", "n"}) {
    const std::unique_ptr<Graph> graph = read(fmt::format(R"(graph g(%x: f32[{0},16], %w: f32[16,40]) {{
        %0 = matmul(%x, %w)
        %1 = softmax(%0, axis=1)
        %2 = exp(%x)
        %3 = reduce_sum(%2, axes=[0,1])
        %4 = add(%1, %3)
        return %4
      }})",
                                                          size));
    const Data inputs{numbers({9, 16}, 1), numbers({16, 40}, 2)};
    expect_close(compile(*graph, without_cache())->run(inputs).front().tensor(),
                 evaluate(*graph, inputs).front().tensor());
  }
}

// Each step is read twice by the next, so that one formula of all would double with each.
TEST(Compile, LeavesFormulasOfAReasonableSize) {
  std::string text = "graph g(%x: f32[8,8], %w: f32[8,8]) { %v0 = matmul(%x, %w)\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("%s{0} = sin(%v{0})\n%v{1} = mul(%v{0}, %s{0})\n", i, i + 1);
  const std::unique_ptr<Graph> graph = read(text + "return %v60 }");
  const Data inputs{numbers({8, 8}, 1), numbers({8, 8}, 2)};
  expect_close(compile(*graph, without_cache())->run(inputs).front().tensor(),
               evaluate(*graph, inputs).front().tensor());
}

TEST(Compile, GroupsManyReadersOfOneBuffer) {
  std::string text = "graph g(%x: f32[2,2], %w: f32[2,2]) { %v0 = matmul(%x, %w)\n";
  for (int i = 0; i < 1500; ++i)
    text += fmt::format("%v{1} = matmul(%v{0}, %w)\n", i, i + 1);
  EXPECT_EQ(fusion_of(*read(text + "return %v1500 }"), without_cache()).after.size(), 1501);
}

int64_t bytes_of_constants(const Executor& executor) {
  int64_t bytes = 0;
  for (const Tensor& constant : executor.constants())
    bytes += constant.count() * constant.element_size();
  return bytes;
}

TEST(Compile, ComputesWithWeightsOnce) {
  register_ops();
  Graph graph;
  const Value x = graph.add_input(Type::tensor(DType::F32, {4, 256}), "x");
  const Value w = constant(graph, numbers({256, 256}, 1)), scale = constant(graph, numbers({256}, 2));
  graph.set_outputs({matmul(x, w * scale)});
  const std::unique_ptr<Executor> program = compile(graph, without_cache());
  EXPECT_EQ(count_kernels(*program), 1);
  EXPECT_EQ(bytes_of_constants(*program), 256 * 256 * 4);
  const Data inputs{numbers({4, 256}, 3)};
  expect_close(program->run(inputs).front().tensor(), evaluate(graph, inputs).front().tensor());
}

TEST(Compile, JoinsAndPacksWeightsAtOnce) {
  register_ops();
  Graph graph;
  const Value x = graph.add_input(Type::tensor(DType::F32, {4, 33}), "x");
  const Value a = constant(graph, numbers({700, 33}, 1)), b = constant(graph, numbers({5, 33}, 2));
  graph.set_outputs({matmul(x, concat({a, b}, 0), {.a = false, .b = true})});
  const std::unique_ptr<Executor> program = compile(graph, without_cache());
  EXPECT_EQ(count_kernels(*program), 1);
  EXPECT_LT(bytes_of_constants(*program), (705 + 64) * 33 * 4);  // the last panel may hold some twice
  const Data inputs{numbers({4, 33}, 3)};
  expect_close(program->run(inputs).front().tensor(), evaluate(graph, inputs).front().tensor());
}

TEST(Compile, DoesNotStoreMoreThanWeightsTake) {
  register_ops();
  Graph graph;
  const Value x = graph.add_input(Type::tensor(DType::F32, {2048, 256}), "x");
  const Value w = constant(graph, numbers({1, 1024 * 32}, 1));
  graph.set_outputs({x + reshape(concat({w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w}, 0), {2048, 256})});
  const std::unique_ptr<Executor> program = compile(graph, without_cache());
  EXPECT_EQ(bytes_of_constants(*program), 1024 * 32 * 4);
  const Data inputs{numbers({2048, 256}, 3)};
  expect_close(program->run(inputs).front().tensor(), evaluate(graph, inputs).front().tensor());
}

TEST(Compile, OverwritesWhatNobodyNeedsAnyMore) {
  const auto arena = [](std::string_view last) {
    const std::unique_ptr<Graph> graph = read(fmt::format(R"(graph g(%x: f32[64,64], %w: f32[64,64]) {{
        %0 = softmax(%x, axis=0)
        %1 = erf(%0)
        %2 = matmul(%1, %w)
        {}
      }})",
                                                          last));
    const std::unique_ptr<Executor> program = compile(*graph, without_cache());
    const Data inputs{numbers({64, 64}, 1), numbers({64, 64}, 2)};
    expect_close(program->run(inputs).front().tensor(), evaluate(*graph, inputs).front().tensor());
    return plan_memory(program->program(), {}).lower_bound;
  };
  constexpr int64_t kMatrix = 64 * 64 * 4;
  EXPECT_LT(arena("return %2"), 2 * kMatrix);  // one of them, and the sums of the softmax
  EXPECT_GE(arena("%3 = matmul(%0, %2) return %3"), 3 * kMatrix);
}

// %3 reads what %0 reads, but one of its numbers is a size that %1 tells.
TEST(Compile, WaitsForSizesThatOnlyRunningTells) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[8], %z: i64[2]) {
    %0 = neg(%z)
    %1 = nonzero(%x)
    %2 = shape(%1)
    %3 = add(%2, %z)
    return %0, %3
  })");
  Tensor x(DType::F32, {8});
  x.mutable_data<float>()[2] = x.mutable_data<float>()[5] = 1;
  const Data results = compile(*graph, without_cache())->run({x, Tensor::of(std::vector<int64_t>{10, 20})});
  EXPECT_EQ(widen<double>(results[0].tensor()), (std::vector<double>{-10, -20}));
  EXPECT_EQ(widen<double>(results[1].tensor()), (std::vector<double>{11, 22}));
}

// As they stand in the graph, both products would be in memory at once.
// What reads an input need not wait for another shape of it, which may wait for that in turn.
TEST(Compile, WaitsForNoOtherShapeOfAnInput) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[m]) {
    %n = nonzero(%x)
    %s = shape(%n)
    %v = reshape(%x, %s)
    %y = neg(%v)
    return %y
  })");
  const Data inputs{numbers({5}, 1)};
  expect_close(std::get<Tensor>(compile(*graph, without_cache())->run(inputs).front()),
               std::get<Tensor>(evaluate(*graph, inputs).front()));
}

TEST(Compile, RunsInAnOrderThatTakesLittleMemory) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[64,64], %v: f32[64,1024], %w: f32[64,1024], %u: f32[1024,2]) {
        %0 = matmul(%x, %v)
        %1 = matmul(%x, %w)
        %2 = matmul(%0, %u)
        %3 = matmul(%1, %u)
        %4 = add(%2, %3)
        return %4
      })");
  const std::unique_ptr<Executor> program = compile(*graph, without_cache());
  EXPECT_EQ(plan_memory(program->program(), {}).lower_bound, 64 * 1024 * 4 + 64 * 2 * 4);
  const Data inputs{numbers({64, 64}, 1), numbers({64, 1024}, 2), numbers({64, 1024}, 3),
                    numbers({1024, 2}, 4)};
  expect_close(program->run(inputs).front().tensor(), evaluate(*graph, inputs).front().tensor());
}

// Fetching lines only to overwrite them would cost a third of the time.
TEST(Compile, StreamsWhatIsTooLargeForCaches) {
  const auto space_of_result = [](int64_t rows, std::string_view body) {
    const std::unique_ptr<Graph> graph = read(fmt::format("graph g(%x: f32[{},1024]) {{ {} }}", rows, body));
    return kernels_of(*graph, without_cache()).front().outputs.front().space;
  };
  EXPECT_EQ(space_of_result(8192, "%0 = relu(%x) return %0"), loops::Space::Streamed);
  EXPECT_EQ(space_of_result(8192, "%0 = softmax(%x, axis=1) return %0"), loops::Space::Streamed);
  EXPECT_EQ(space_of_result(1024, "%0 = relu(%x) return %0"), loops::Space::Memory);
}

}  // namespace
}  // namespace tenon
