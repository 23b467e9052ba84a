// Two products with reductions between them become one kernel, which keeps some rows in cache: softmax(q kᵀ)
// v.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;
using compiler::FusionReport;
using compiler::kernels_of;
using fusion::KernelCost;
using runtime::Executor;
using runtime::KernelRegion;
using runtime::KernelStep;
using runtime::Step;

namespace {

CompileContext without_cache(int cores = 2) {
  CompileContext options = here();
  options.cache = std::nullopt;
  options.target.cores = cores;
  return options;
}

std::unique_ptr<Graph> read(std::string_view text) {
  register_ops();
  return parse(text);
}

size_t count_kernels(std::string_view text, int cores = 2) {
  return fusion_of(*read(text), without_cache(cores)).after.size();
}

// Pseudo-random numbers between -2 and 2.
Tensor numbers(DType dtype, const Extents& extents, uint64_t seed) {
  Tensor wide(DType::F64, extents);
  for (double& value : wide.mutable_data<double>()) {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    value = static_cast<double>(seed >> 40) / (1 << 22) - 2;
  }
  return narrow<double>(dtype, extents, wide.data<double>());
}

void expect_close(const Tensor& got, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(got.extents(), wanted.extents());
  const std::vector<double> a = widen<double>(got), b = widen<double>(wanted);
  double largest = 0;
  for (double each : b)
    largest = std::max(largest, std::abs(each));
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * largest) << "element " << i;  // NaN is not
}

// Compiled for this machine and for one with narrower vectors, by one thread and by three: what the reference
// gives, and the same bits whatever the threads.
void expect_reference(std::string_view text, const std::vector<Data>& runs, double tolerance = 1e-5) {
  const std::unique_ptr<Graph> graph = read(text);
  CompileContext narrow = without_cache(3);
  narrow.target.vector_bytes = 16;
  narrow.target.vector_registers = 16;
  for (const CompileContext& options : {without_cache(), narrow}) {
    const std::unique_ptr<Executor> program = compile(*graph, options);
    for (const Data& inputs : runs) {
      const Tensor one = std::get<Tensor>(program->run(inputs, {.threads = 1}).front()),
                   three = std::get<Tensor>(program->run(inputs, {.threads = 3}).front());
      expect_close(one, std::get<Tensor>(evaluate(*graph, inputs).front()), tolerance);
      ASSERT_TRUE(identical(one, three));
    }
  }
}

// Attention in ops of its own, for so many heads, queries and keys, of these sizes.
std::string in_ops(std::string_view heads, std::string_view queries, std::string_view keys,
                   std::string_view size, std::string_view results) {
  return fmt::format(R"(graph g(%q: f32[2,{0},{1},{3}], %k: f32[2,{0},{2},{3}], %v: f32[2,{0},{2},{4}]) {{
    %scores = matmul(%q, %k, transpose_b=true)
    %scale = constant(value=f32[] {{0.25}})
    %scaled = mul(%scores, %scale)
    %largest = reduce_max(%scaled, axes=[3], keep_dims=true)
    %below = sub(%scaled, %largest)
    %powers = exp(%below)
    %total = reduce_sum(%powers, axes=[3], keep_dims=true)
    %weights = div(%powers, %total)
    %y = matmul(%weights, %v)
    %z = relu(%y)
    return %z
  }})",
                     heads, queries, keys, size, results);
}
std::string in_ops(int64_t heads, int64_t queries, int64_t keys, int64_t size, int64_t results) {
  return in_ops(std::to_string(heads), std::to_string(queries), std::to_string(keys), std::to_string(size),
                std::to_string(results));
}

Data inputs_of(int64_t heads, int64_t queries, int64_t keys, int64_t size, int64_t results) {
  return {numbers(DType::F32, {2, heads, queries, size}, 1), numbers(DType::F32, {2, heads, keys, size}, 2),
          numbers(DType::F32, {2, heads, keys, results}, 3)};
}

TEST(FusedAttention, MakesOneKernelOfAttention) {
  const FusionReport report = fusion_of(*read(in_ops(4, 128, 128, 32, 32)), without_cache());
  ASSERT_EQ(report.after.size(), 1);
  EXPECT_EQ(report.after[0].cost.bytes, Dim(4 * 2 * 4 * 128 * 32 * 4));  // q, k, v and the result
  EXPECT_TRUE(report.edges.empty());
}

// Two products that are added up could each begin the attention; one does.
TEST(FusedAttention, BeginWithOneProduct) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%q: f32[4,64,16], %k: f32[4,64,16], %p: f32[4,64,16],
                                                       %r: f32[4,64,16], %v: f32[4,64,16]) {
    %0 = matmul(%q, %k, transpose_b=true)
    %1 = matmul(%p, %r, transpose_b=true)
    %2 = add(%0, %1)
    %3 = tanh(%2)
    %4 = mul(%3, %3)
    %5 = reduce_sum(%4, axes=[2], keep_dims=true)
    %6 = div(%4, %5)
    %7 = matmul(%6, %v)
    return %7
  })");
  Data inputs;
  for (uint64_t i = 0; i < 5; ++i)
    inputs.emplace_back(numbers(DType::F32, {4, 64, 16}, i + 1));
  expect_close(std::get<Tensor>(compile(*graph, without_cache())->run(inputs).front()),
               std::get<Tensor>(evaluate(*graph, inputs).front()), 1e-5);
}

// Of one row of scores to the next, nothing is kept.
TEST(FusedAttention, TakesMemoryByTheNumberOfKeysAlone) {
  const std::unique_ptr<Executor> program =
      compile(*read(in_ops("4", "n", "n", "16", "16")), without_cache());
  EXPECT_EQ(plan_memory(program->program(), {{"n", 4096}}).bytes, 0);
  for (const Step& step : program->program().steps)
    for (const KernelRegion& region : std::get<KernelStep>(step).regions) {
      const auto scratch = [&](int64_t n) { return *region.scratch.substitute({{"n", Dim(n)}}).constant(); };
      EXPECT_LE(scratch(4096), 2 * scratch(2048));
    }
}

TEST(FusedAttention, LeavesWhatOthersReadApart) {
  const std::string text = in_ops(4, 128, 128, 32, 32);
  const auto returning = [&](const std::string& more) {
    return text.substr(0, text.find("return")) + "return %z, " + more + "\n}";
  };
  EXPECT_EQ(count_kernels(returning("%weights")), 3);
  EXPECT_EQ(count_kernels(returning("%scores")), 3);
  EXPECT_EQ(count_kernels(returning("%total")), 3);
  EXPECT_EQ(count_kernels(returning("%y")), 1);  // what is made of the results may be read by all
}

// A scale of q or k is applied to each element once, when it is put where the products are made.
TEST(FusedAttention, TakesScalesOfFactorsAlong) {
  const auto fused = [](std::string_view function, std::string_view more) {
    return fusion_of(*read(fmt::format(R"(graph g(%q: f32[8,64,16], %k: f32[8,64,16], %v: f32[8,64,16]) {{
          %scale = constant(value=f32[] {{0.5}})
          %a = mul(%q, %scale)
          %b = {}
          %0 = matmul(%a, %b, transpose_b=true)
          %1 = softmax(%0, axis=-1)
          %2 = matmul(%1, %v)
          return %2{}
        }})",
                                       function, more)),
                     without_cache());
  };
  const FusionReport report = fused("mul(%k, %scale)", "");
  ASSERT_EQ(report.after.size(), 1);
  const auto operations = [](const std::vector<KernelCost>& costs) {
    Dim sum = 0;
    for (const KernelCost& cost : costs)
      sum = sum + cost.operations;
    return sum;
  };
  EXPECT_EQ(report.after[0].cost.operations, operations(report.before));
  EXPECT_EQ(fused("mul(%k, %scale)", ", %b").after.size(), 2);  // others need it
  EXPECT_EQ(fused("tanh(%k)", "").after.size(), 2);  // each row would compute it, where there are few
}

// Heads and queries change places where results are written, and what is read with them; rows stay whole.
TEST(FusedAttention, TakesTransposesOfResultsAlong) {
  const auto text = [](std::string_view permutation, std::string_view sizes) {
    return fmt::format(R"(graph g(%q: f32[4,40,16], %k: f32[4,50,16], %v: f32[4,50,24], %b: f32[{1}]) {{
      %0 = matmul(%q, %k, transpose_b=true)
      %1 = softmax(%0, axis=-1)
      %2 = matmul(%1, %v)
      %3 = relu(%2)
      %4 = transpose(%3, permutation=[{0}])
      %5 = tanh(%4)
      %6 = add(%5, %b)
      return %6
    }})",
                       permutation, sizes);
  };
  EXPECT_EQ(count_kernels(text("1,0,2", "40,4,24")), 1);
  EXPECT_EQ(count_kernels(text("0,2,1", "4,24,40")), 2);
  for (const auto& [permutation, sizes] :
       std::vector<std::pair<std::string, Extents>>{{"1,0,2", {40, 4, 24}}, {"0,2,1", {4, 24, 40}}})
    expect_reference(text(permutation, fmt::format("{}", fmt::join(sizes, ","))),
                     {{numbers(DType::F32, {4, 40, 16}, 1), numbers(DType::F32, {4, 50, 16}, 2),
                       numbers(DType::F32, {4, 50, 24}, 3), numbers(DType::F32, sizes, 4)}});
}

TEST(FusedAttention, LeavesProductsWithoutReductionsBetweenThemApart) {
  EXPECT_EQ(count_kernels(R"(graph g(%x: f32[4,128,16], %k: f32[4,128,16], %v: f32[4,128,16]) {
    %0 = matmul(%x, %k, transpose_b=true)
    %1 = relu(%0)
    %2 = matmul(%1, %v)
    return %2
  })"),
            2);
}

// Each thread would have to lay out all weights for itself, which takes longer than what it saves.
TEST(FusedAttention, LeavesLayersOfWeightsApart) {
  const auto kernels = [](int64_t rows, int64_t size) {
    return count_kernels(fmt::format(R"(graph g(%x: f32[{0},{1}], %w: f32[{1},128], %v: f32[128,64]) {{
      %0 = matmul(%x, %w)
      %1 = softmax(%0, axis=-1)
      %2 = matmul(%1, %v)
      return %2
    }})",
                                     rows, size));
  };
  EXPECT_EQ(kernels(128, 512), 3);
  EXPECT_EQ(kernels(4096, 64), 1);
}

// Where each query has keys of its own, but not values, the second product is faster by blocks of queries.
TEST(FusedAttention, LeavesProductsThatBlocksSuitBetterApart) {
  EXPECT_EQ(count_kernels(R"(graph g(%q: f32[4,64,1,16], %k: f32[4,64,32,16], %v: f32[4,32,16]) {
    %0 = mul(%q, %k)
    %1 = reduce_sum(%0, axes=[3])
    %2 = softmax(%1, axis=-1)
    %3 = matmul(%2, %v)
    return %3
  })"),
            3);
}

TEST(FusedAttention, LeavesFewRowsToManyThreads) {
  EXPECT_EQ(count_kernels(in_ops(1, 16, 4096, 16, 16), 2), 1);
  EXPECT_EQ(count_kernels(in_ops(1, 16, 4096, 16, 16), 16), 3);
}

TEST(FusedAttention, ComputesForAnySize) {
  for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 40}, {3, 1}, {8, 32}, {9, 5}, {65, 33}, {100, 197}, {9, 0}})
    for (const int64_t size : {1, 16}) {
      SCOPED_TRACE(fmt::format("{} queries, {} keys, {}", queries, keys, size));
      expect_reference(in_ops(2, queries, keys, size, size + 2),
                       {inputs_of(2, queries, keys, size, size + 2)});
    }
}

TEST(FusedAttention, ComputesForSizesThatOnlyRunningTells) {
  std::vector<Data> runs;
  for (const auto& [queries, keys] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 1}, {1, 70}, {5, 64}, {8, 31}, {33, 100}, {70, 2}, {0, 9}, {9, 0}})
    runs.push_back(inputs_of(3, queries, keys, 16, 24));
  expect_reference(in_ops("3", "a", "b", "16", "24"), runs);
}

// One query: values are read once, in several sums that do not wait for each other.
TEST(FusedAttention, SumsOneRowInChains) {
  const std::string text = in_ops("1", "1", "n", "32", "64");
  CompileContext options = without_cache();
  options.target.vector_bytes = 64;
  options.target.vector_registers = 32;
  EXPECT_NE(print(kernels_of(*read(text), options).front()).find("for chain0 in 0..4 unrolled"),
            std::string::npos);
  expect_reference(text,
                   {inputs_of(1, 1, 1, 32, 64), inputs_of(1, 1, 7, 32, 64), inputs_of(1, 1, 17'003, 32, 64)});
}

// Keys and values in other orders than that of the sums.
// Values whose sums would not lie side by side are turned once for all lines.
TEST(FusedAttention, ReadsTransposedOperands) {
  constexpr std::string_view text = R"(graph g(%q: f32[2,40,16], %k: f32[2,16,50], %v: f32[2,24,50]) {
    %0 = matmul(%q, %k)
    %1 = softmax(%0, axis=-1)
    %2 = matmul(%1, %v, transpose_b=true)
    return %2
  })";
  expect_reference(text, {{numbers(DType::F32, {2, 40, 16}, 1), numbers(DType::F32, {2, 16, 50}, 2),
                           numbers(DType::F32, {2, 24, 50}, 3)}});
  const std::string kernel = print(kernels_of(*read(text), without_cache()).front());
  EXPECT_NE(kernel.find("f32[50,24]\n"), std::string::npos) << kernel;
  EXPECT_LT(kernel.find("f32[50,24]\n"), kernel.find("for queries0")) << kernel;
}

// Values that differ between heads of the same keys are read as they lie.
TEST(FusedAttention, ReadsTransposedValuesOfEachHead) {
  expect_reference(R"(graph g(%q: f32[2,3,40,16], %k: f32[2,1,16,50], %v: f32[2,3,24,50]) {
    %0 = matmul(%q, %k)
    %1 = softmax(%0, axis=-1)
    %2 = matmul(%1, %v, transpose_b=true)
    return %2
  })",
                   {{numbers(DType::F32, {2, 3, 40, 16}, 1), numbers(DType::F32, {2, 1, 16, 50}, 2),
                     numbers(DType::F32, {2, 3, 24, 50}, 3)}});
}

// The attention op, of 6 heads, with more parameters, operands and attributes.
void expect_attention(const std::string& parameters, const std::string& arguments, const Data& more,
                      int64_t key_heads = 6, DType dtype = DType::F32, double tolerance = 1e-5) {
  const std::string text = fmt::format(
      R"(graph g(%q: {0}[2,6,33,16], %k: {0}[2,{1},40,16], %v: {0}[2,{1},40,24]{2}) {{
        %y = attention(%q, %k, %v, {3}scale=0.25)
        return %y
      }})",
      info(dtype).name, key_heads, parameters, arguments);
  SCOPED_TRACE(text);
  Data inputs{numbers(dtype, {2, 6, 33, 16}, 1), numbers(dtype, {2, key_heads, 40, 16}, 2),
              numbers(dtype, {2, key_heads, 40, 24}, 3)};
  inputs.insert(inputs.end(), more.begin(), more.end());
  bool by_blocks = false;
  for (const loops::Kernel& kernel : kernels_of(*read(text), without_cache()))
    by_blocks |= print(kernel).find("for queries0") != std::string::npos;
  EXPECT_TRUE(by_blocks);
  expect_reference(text, {inputs}, tolerance);
}

// Every third is false, and all of the second row.
Tensor mask(const Extents& extents) {
  Tensor tensor(DType::Bool, extents);
  const std::span<bool> elements = tensor.mutable_data<bool>();
  const auto row = static_cast<size_t>(extents.back());
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = i % 3 != 0 && i / row != 1;
  return tensor;
}

TEST(FusedAttention, TakesMasksAlong) {
  expect_attention("", "", {});
  expect_attention(", %m: bool[33,40]", "%m, ", {mask({33, 40})});
  expect_attention(", %m: bool[2,1,1,40]", "%m, ", {mask({2, 1, 1, 40})});
  expect_attention(", %m: f32[6,33,40]", "%m, softcap=2.0, ", {numbers(DType::F32, {6, 33, 40}, 4)});
  expect_attention(", %m: f32[2,6,33,40]", "%m, ", {numbers(DType::F32, {2, 6, 33, 40}, 4)});
  expect_attention(", %m: bool[33,31]", "%m, pad_mask=true, ", {mask({33, 31})});
}

// A mask is added where its sums are read, and not kept; powers, which take longer, are.
TEST(FusedAttention, KeepsOnlyWhatTakesLong) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%q: f32[4,64,16], %k: f32[4,64,16], %v: f32[4,64,16], %m: f32[64,64]) {
        %0 = matmul(%q, %k, transpose_b=true)
        %1 = add(%0, %m)
        %2 = softmax(%1, axis=-1)
        %3 = matmul(%2, %v)
        return %3
      })");
  const std::string text = print(kernels_of(*graph, without_cache()).front());
  EXPECT_EQ(text.find(": f32[64]\n"), text.rfind(": f32[64]\n")) << text;
}

// Lines are worked on abreast as long as they stay in the smallest cache.
TEST(FusedAttention, WorksOnSeveralLinesStepByStep) {
  CompileContext options = without_cache();
  options.target.caches.level1_data = 32 << 10;
  const auto kept = [&](int64_t keys) {
    const std::string text = print(kernels_of(*read(in_ops(4, 64, keys, 16, 16)), options).front());
    return [text](std::string_view buffer) { return text.find(buffer) != std::string::npos; };
  };
  EXPECT_TRUE(kept(1000)("f32[4,1000]\n"));
  EXPECT_TRUE(kept(9000)("f32[1,9000]\n"));
}

// As many as there are registers for, unless fewer leave less of the last group over.
TEST(FusedAttention, MultipliesManyLinesAtOnce) {
  CompileContext options = without_cache();
  options.target.caches = {.level1_data = 48 << 10, .level2 = 2 << 20};
  const auto has_blocks = [&](int64_t lines, std::string_view size) {
    const std::string text = print(kernels_of(*read(in_ops(4, lines, 128, 64, 64)), options).front());
    return text.find(fmt::format("f32[{}] in private", size)) != std::string::npos;
  };
  options.target.vector_bytes = 64;
  options.target.vector_registers = 32;
  EXPECT_TRUE(has_blocks(128, "13,32"));
  EXPECT_TRUE(has_blocks(100, "10,32"));
  EXPECT_TRUE(has_blocks(9, "9,32"));
  options.target.vector_bytes = 32;
  options.target.vector_registers = 16;
  EXPECT_TRUE(has_blocks(100, "5,16"));
  EXPECT_TRUE(has_blocks(24, "6,16"));
}

TEST(FusedAttention, TakesWindowsAlong) {
  expect_attention("", "window_after=0, ", {});
  expect_attention(", %o: i64[2]", "offset=%o, window_before=5, window_after=0, ",
                   {Tensor::of<int64_t>({7, -40})});
  expect_attention(", %l: i64[2]", "lengths=%l, ", {Tensor::of<int64_t>({40, 0})});
}

// No key is within the window of queries far past the last key: their result is zero.
TEST(FusedAttention, GivesZeroWhereNoKeyIsWithinTheWindow) {
  for (const std::string_view window :
       {"window_before=4", "window_before=5", "window_before=2, window_after=0", "offset=%o, window_after=0",
        "offset=%p, window_after=0"})
    expect_reference(fmt::format(R"(graph g(%q: f32[1,2,9,8], %k: f32[1,2,4,8], %v: f32[1,2,4,8]) {{
      %o = constant(value=i64[1] {{-3}})
      %p = constant(value=i64[1] {{1}})
      %y = attention(%q, %k, %v, scale=0.25, {})
      return %y
    }})",
                                 window),
                     {{numbers(DType::F32, {1, 2, 9, 8}, 1), numbers(DType::F32, {1, 2, 4, 8}, 2),
                       numbers(DType::F32, {1, 2, 4, 8}, 3)}});
}

TEST(FusedAttention, TakesKeysThatHeadsShareAlong) {
  expect_attention("", "", {}, 1);
  expect_attention("", "window_after=0, ", {}, 3);
  expect_attention(", %m: f32[33,40]", "%m, ", {numbers(DType::F32, {33, 40}, 4)}, 2);
  expect_attention(", %m: f32[6,33,40]", "%m, ", {numbers(DType::F32, {6, 33, 40}, 4)}, 2);
  expect_attention(", %m: bool[2,1,33,40]", "%m, ", {mask({2, 1, 33, 40})}, 2);
  expect_attention(", %m: f32[2,6,1,40]", "%m, ", {numbers(DType::F32, {2, 6, 1, 40}, 4)}, 3);
}

// What heads share is packed once for all of them.
TEST(FusedAttention, PacksOnceForHeadsThatShareKeys) {
  const std::string text =
      print(kernels_of(*read(R"(graph g(%q: f32[1,12,64,16], %k: f32[1,4,64,16], %v: f32[1,4,64,16]) {
        %y = attention(%q, %k, %v, scale=0.25)
        return %y
      })"),
                       without_cache(1))
                .front());
  EXPECT_LT(text.find("for panel0"), text.find("for r1 in 0..3 {")) << text;
}

TEST(FusedAttention, TakesNarrowFloats) {
  expect_attention("", "window_after=0, ", {}, 2, DType::F16, 2e-3);
  expect_attention("", "", {}, 6, DType::F64, 1e-12);
}

// Whose groups do not follow from the number of elements.
TEST(FusedAttention, OfGroupsMayBeEmpty) {
  expect_reference(R"(graph g(%q: f32[2,4,0,8], %k: f32[2,2,5,8], %v: f32[2,2,5,8]) {
    %y = attention(%q, %k, %v, scale=0.25)
    return %y
  })",
                   {{numbers(DType::F32, {2, 4, 0, 8}, 1), numbers(DType::F32, {2, 2, 5, 8}, 2),
                     numbers(DType::F32, {2, 2, 5, 8}, 3)}});
}

}  // namespace
}  // namespace tenon
