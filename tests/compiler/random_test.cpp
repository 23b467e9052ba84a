// random_test.cpp — random ops draw in kernels what the reference evaluator draws, bit by bit but for the
// functions of a normal distribution, for every thread count and device.
#include "compiler/expect_compiled.h"
#include "compiler/separate_gpu.h"
#include "ir/evaluate.h"
#include "passes/pipeline.h"

namespace tenon {
namespace {

compiler::CompileContext without_fusion() {
  compiler::CompileContext context = without_cache();
  context.fuse = false;
  return context;
}

// As read and as optimised, in several ways.
void expect_drawn(std::string_view text, const std::map<std::string, int64_t>& sizes, double tolerance = 0) {
  const std::unique_ptr<Graph> graph = read(text), optimised = graph->clone();
  Journal journal;
  optimize(*optimised, journal);
  const Data inputs = inputs_for(*graph, sizes);
  for (const compiler::CompileContext& context : {without_cache(), without_fusion(), for_gpu()})
    for (const Graph* each : {graph.get(), optimised.get()}) {
      const std::unique_ptr<runtime::Executor> program = compile(*each, context);
      for (const uint64_t seed : {uint64_t{0}, uint64_t{0x123456789abcdef}}) {
        const Data wanted = evaluate(*graph, inputs, {.seed = seed});
        for (const int threads : {1, 2}) {
          const Data got = program->run(inputs, {.seed = seed, .threads = threads});
          for (size_t i = 0; i < wanted.size(); ++i) {
            ASSERT_EQ(got[i].tensor().extents(), wanted[i].tensor().extents());
            const std::vector<double> a = widen<double>(got[i].tensor()),
                                      b = widen<double>(wanted[i].tensor());
            for (size_t k = 0; k < a.size(); ++k)
              ASSERT_NEAR(a[k], b[k], tolerance * std::max(1.0, std::abs(b[k])))
                  << "output " << i << ", element " << k;
          }
        }
      }
    }
}

TEST(Random, UniformNumbersHaveTheSameBits) {
  expect_drawn(R"(graph g(%x: f32[n,37]) {
    %s = shape(%x)
    %0 = random_uniform(%s, dtype=f32)
    %1 = random_uniform(%s, dtype=f64)
    %2 = random_uniform(%s, dtype=f16, high=3.0)
    %3 = random_uniform(%s, dtype=bf16, low=-0.3, high=0.1)
    %4 = random_uniform(%s, dtype=f32, low=0.1, high=0.7)
    %5 = random_uniform(%s, dtype=f32, low=-5.0, high=1e9, seed=11)
    %6 = random_uniform(%s, dtype=f32, high=0.7)
    return %0, %1, %2, %3, %4, %5, %6
  })",
               {{"n", 50}});
}

TEST(Random, NormalNumbersAreRoundedAlike) {
  const auto text = [](std::string_view dtype) {
    return fmt::format(R"(graph g(%x: f32[n,37]) {{
      %s = shape(%x)
      %0 = random_normal(%s, dtype={0})
      %1 = random_normal(%s, dtype={0}, mean=3.0, deviation=0.5, seed=11)
      return %0, %1
    }})",
                       dtype);
  };
  expect_drawn(text("f64"), {{"n", 50}}, 1e-13);
  expect_drawn(text("f32"), {{"n", 50}}, 1e-6);
  expect_drawn(text("f16"), {{"n", 50}}, 1e-3);
}

// Dropout: the numbers are drawn where they are used.
TEST(Random, FusesWithWhatUsesIt) {
  const char* dropout = R"(graph g(%x: f32[n,40]) {
    %s = shape(%x)
    %keep = constant(value=f64[] {0.9})
    %zero = constant(value=f32[] {0})
    %0 = random_uniform(%s, dtype=f64)
    %1 = less(%0, %keep)
    %2 = where(%1, %x, %zero)
    return %2
  })";
  expect_drawn(dropout, {{"n", 30}});
  for (const compiler::CompileContext& context : {without_cache(), for_gpu()}) {
    const std::vector<loops::Kernel> kernels = kernels_of(*read(dropout), context);
    ASSERT_EQ(kernels.size(), 1);
    EXPECT_TRUE(has(loops::print(kernels.front()), "philox(")) << loops::print(kernels.front());
  }
}

// How large a result is may itself be computed.
TEST(Random, OfDynamicSizes) {
  expect_drawn(R"(graph g(%x: f32[n]) {
    %where = nonzero(%x)
    %s = shape(%where)
    %0 = random_uniform(%s, dtype=f32)
    %1 = exp(%0)
    %2 = random_uniform(%s, dtype=f32)
    return %2
  })",
               {{"n", 30}});
  expect_drawn(R"(graph g(%x: f32[n]) {
    %s = shape(%x)
    %0 = random_uniform(%s, dtype=f32)
    return %0
  })",
               {{"n", 0}});
}

TEST(Random, IterationsDrawTheirOwnNumbers) {
  const char* scan = R"(graph g(%x: f32[6,9]) {
    %s = constant(value=i64[1] {9})
    %before = random_uniform(%s, dtype=f32)
    %a = scan([], [%x], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0]) body(%x: f32[9]) {
      %n = constant(value=i64[1] {9})
      %r = random_uniform(%n, dtype=f32)
      return %r
    }
    %after = random_uniform(%s, dtype=f32)
    return %before, %a, %after
  })";
  expect_drawn(scan, {});
  const std::unique_ptr<Graph> graph = read(scan);
  const Data drawn = evaluate(*graph, inputs_for(*graph, {}));
  std::vector<double> all;
  for (const Datum& each : drawn)
    for (const double number : widen<double>(each.tensor()))
      all.push_back(number);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST(Random, LoopsCarryWhatTheyDraw) {
  expect_drawn(R"(graph g(%x: f32[5]) {
    %limit = constant(value=i64[] {4})
    %y = while(trip_count=%limit, carried=[%x]) body(%i: i64[], %c: f32[5]) {
      %go = constant(value=bool[] {1})
      %n = shape(%c)
      %r = random_uniform(%n, dtype=f32, low=-1.0)
      %d = add(%c, %r)
      return %go, %d
    }
    return %y
  })",
               {}, 1e-6);
}

// What nothing uses still takes its call.
TEST(Random, WhatIsDeadChangesNoOtherNumbers) {
  const char* text = R"(graph g(%x: f32[n]) {
    %s = shape(%x)
    %0 = random_normal(%s, dtype=f32)
    %1 = random_uniform(%s, dtype=f32)
    %2 = random_uniform(%s, dtype=f64, seed=4)
    %3 = random_uniform(%s, dtype=f32)
    return %3
  })";
  expect_drawn(text, {{"n", 100}});
  EXPECT_EQ(kernels_of(*read(text), without_cache()).size(), 1);
}

TEST(Random, MultinomialDrawsAsTheReference) {
  expect_drawn(R"(graph g(%x: f32[3,7]) {
    %n = constant(value=i64[] {50})
    %0 = multinomial(%x, %n, dtype=i32)
    %1 = multinomial(%x, %n, dtype=i64)
    return %0, %1
  })",
               {});
}

}  // namespace
}  // namespace tenon
