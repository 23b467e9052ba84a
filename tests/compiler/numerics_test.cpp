// What compiled code makes of numbers at the edges of what their dtypes hold.
#include <cmath>

#include "compile_here.h"
#include "compiler/compile.h"
#include "ir/graph_text.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;

namespace {

// From 2^63 on, only unsigned numbers of 64 bits hold them, of which the narrower ones have the low bits.
TEST(Numerics, CastsFloatsToIntegersAsTheReferenceDoes) {
  const std::vector<double> numbers = {0.0,
                                       -0.0,
                                       0.9,
                                       -0.9,
                                       1.5,
                                       -1.5,
                                       7.9,
                                       255.0,
                                       -129.0,
                                       65504.0,
                                       1e9,
                                       -1e9,
                                       0x1p31,
                                       0x1p32,
                                       -0x1p40 - 0x1p20,
                                       0x1p62 + 0x1p41,
                                       0x1p63,
                                       -0x1p63,
                                       0x1.8p63,
                                       0x1.000002p63,
                                       0x1.0000000000345p63,
                                       -0x1.8p63,
                                       0x1p64,
                                       1e30,
                                       -1e30,
                                       HUGE_VAL,
                                       -HUGE_VAL,
                                       std::nan("")};
  for (const char* from : {"f64", "f32", "bf16", "f16"})
    for (const char* to :
         {"i64", "u64", "i32", "u32", "i16", "u16", "i8", "u8", "i4", "u4", "i2", "u2", "bool"}) {
      const auto graph =
          parse_graph(fmt::format("graph(%x: {}[n]) {{ %y = cast(%x, to={}) return %y }}", from, to));
      SCOPED_TRACE(fmt::format("{} to {}", from, to));
      const Data inputs{tensor(*parse_dtype(from), {static_cast<int64_t>(numbers.size())}, numbers)};
      expect_tensor(compile(*graph, here())->run(inputs)[0], evaluate(*graph, inputs)[0].tensor());
    }
}

TEST(Numerics, SaturatesAsTheReferenceDoes) {
  for (const char* types : {"i64 u32", "i64 i2", "f32 u8", "f32 f16"}) {
    const std::string from(types, 3), to(types + 4);
    const auto graph = parse_graph(
        fmt::format("graph(%x: {}[n]) {{ %y = cast(%x, to={}, saturate=true) return %y }}", from, to));
    const Data inputs{tensor(*parse_dtype(from), {4}, {1, -1e5, 1e5, 1e15})};
    expect_tensor(compile(*graph, here())->run(inputs)[0], evaluate(*graph, inputs)[0].tensor());
  }
}

// As far as docs/compiler.md says: squares are added up in f32.
TEST(Numerics, NormaliseSmallAndLargeElements) {
  for (const char* node :
       {"layer_norm(%x, %s, %b, epsilon=EPSILON)", "rms_norm(%x, %s, epsilon=EPSILON)",
        "instance_norm(%x, %s, %b, epsilon=EPSILON)", "group_norm(%x, %s, %b, groups=2, epsilon=EPSILON)",
        "batch_norm(%x, %s, %b, %b, %s, epsilon=EPSILON)"})
    for (const auto& [size, epsilon] : std::vector<std::pair<double, std::string>>{
             {1e18, "1e-05"}, {1e18, "0"}, {1e-18, "0"}, {1e-25, "1e-05"}, {1e-25, "1e-30"}}) {
      std::string text = node;
      text.replace(text.find("EPSILON"), 7, epsilon);
      SCOPED_TRACE(fmt::format("{} of {}", text, size));
      const auto graph = parse_graph(
          fmt::format("graph(%x: f32[3,4,4], %s: f32[4], %b: f32[4]) {{ %y = {} return %y }}", text));
      std::vector<double> elements(48);
      for (size_t i = 0; i < elements.size(); ++i)
        elements[i] = size * std::sin(static_cast<double>(i * i));
      const Data inputs{f32({3, 4, 4}, elements), f32({4}, {1, 2, 0.5, 1}), f32({4}, {0, 1, -1, 0})};
      const Tensor expected = evaluate(*graph, inputs)[0].tensor();
      double largest = 0;
      for (double value : widen<double>(expected))
        largest = std::max(largest, std::abs(value));
      expect_near(compile(*graph, here())->run(inputs)[0], expected, 1e-5 * largest);
    }
}

// A pool, which it is made of, would have nothing to look at.
TEST(Numerics, NormaliseNothing) {
  for (const Extents& extents : {Extents{2, 0, 3}, Extents{0, 2, 3}, Extents{2, 2, 0}})
    for (const std::string& shape : {fmt::format("{}", fmt::join(extents, ",")), std::string("a,b,c")}) {
      SCOPED_TRACE(shape);
      const auto graph = parse_graph(fmt::format(
          "graph(%x: f32[{}]) {{ %y = local_response_norm(%x, size=3, alpha=1, beta=1, bias=0) return %y }}",
          shape));
      const Data inputs{Tensor(DType::F32, extents)};
      expect_tensor(compile(*graph, here())->run(inputs)[0], inputs[0].tensor());
    }
}

TEST(Numerics, NormaliseOverMoreChannelsThanThereAre) {
  for (const char* channels : {"3", "n"})
    for (const char* size : {"6", "7", "8", "5086444705639490518"}) {
      const auto graph = parse_graph(fmt::format(
          "graph(%x: f32[2,{},2]) {{ %y = local_response_norm(%x, size={}, alpha=4, beta=0.5, bias=1) "
          "return %y }}",
          channels, size));
      const Data inputs{f32({2, 3, 2}, {1, -2, 3, 4, -5, 6, 0, 1, 2, 3, 4, 5})};
      expect_near(compile(*graph, here())->run(inputs)[0], evaluate(*graph, inputs)[0].tensor(), 1e-5);
    }
}

// One after the other, 0.1 a million times would be 100958.
TEST(Numerics, AddUpManyNumbers) {
  constexpr int64_t kMany = 300'000;
  const auto expect_sums = [](const std::string& inputs, const std::string& node, const Extents& extents) {
    SCOPED_TRACE(node + " of " + inputs);
    const auto graph = parse_graph(fmt::format("graph({}) {{ %y = {} return %y }}", inputs, node));
    Data data{filled(DType::F32, extents, 0.1), filled(DType::F32, {kMany, 8}, 1)};
    data.resize(static_cast<size_t>(graph->input_count()));
    for (bool fuse : {true, false}) {
      CompileContext options = here();
      options.fuse = fuse;
      const Tensor sums = compile(*graph, options)->run(data)[0].tensor();
      expect_near(sums, filled(DType::F32, sums.extents(), 0.1 * kMany), 1e-4 * 0.1 * kMany);
    }
  };
  expect_sums(fmt::format("%x: f32[{}]", kMany), "reduce_sum(%x, axes=[0])", {kMany});
  for (int64_t columns : {2, 8, 40})  // few run one by one, many in the lanes of vectors
    expect_sums(fmt::format("%x: f32[{},{}]", kMany, columns), "reduce_sum(%x, axes=[0])", {kMany, columns});
  expect_sums(fmt::format("%x: f32[2,{},3]", kMany), "reduce_sum(%x, axes=[1])", {2, kMany, 3});
  expect_sums(fmt::format("%x: f32[{},2,3]", kMany / 6), "reduce_sum(%x, axes=[0,1,2])", {kMany / 6, 2, 3});
  expect_sums(fmt::format("%x: f32[3,{}], %w: f32[{},8]", kMany, kMany), "matmul(%x, %w)", {3, kMany});
  expect_sums(fmt::format("%x: f32[n,{}], %w: f32[{},8]", kMany, kMany), "matmul(%x, %w)", {10, kMany});
  expect_sums("%x: f32[3,n], %w: f32[n,8]", "matmul(%x, %w)", {3, kMany});
  expect_sums("%x: f32[3,n]", "reduce_sum(%x, axes=[1])", {3, kMany});
}

void expect_draws_of_the_reference(std::string_view text, const Data& inputs) {
  const auto graph = parse_graph(text);
  const Data expected = evaluate(*graph, inputs, {.seed = 7}),
             actual = compile(*graph, here())->run(inputs, {.seed = 7});
  for (size_t i = 0; i < expected.size(); ++i)
    expect_near(actual[i], expected[i].tensor(), 1e-4);
}

// Though less memory would be taken if %b came first.
TEST(Numerics, DrawInTheOrderOfTheGraph) {
  expect_draws_of_the_reference(R"(graph(%x: f32[100,100], %w: f32[4,100]) {
      %large = constant(value=i64[2] {100,100})
      %small = constant(value=i64[1] {4})
      %a = random_uniform(%large, dtype=f32)
      %b = random_uniform(%small, dtype=f32)
      %c = matmul(%b, %w)
      %d = matmul(%c, %x)
      %e = matmul(%d, %x)
      %y = matmul(%a, %e)
      return %y
    })",
                                {filled(DType::F32, {100, 100}, 0.01), filled(DType::F32, {4, 100}, 0.1)});
}

TEST(Numerics, DrawInNestedGraphsWhereOthersStopped) {
  expect_draws_of_the_reference(R"(graph(%many: i64[]) {
      %n = constant(value=i64[1] {3})
      %a = random_uniform(%n, dtype=f32)
      %b = while(%many, carried=[%a], captured=[%n]) body(%iteration: i64[], %v: f32[3], %n: i64[1]) {
        %yes = constant(value=bool[] {1})
        %r = random_normal(%n, dtype=f32)
        %w = add(%v, %r)
        return %yes, %w
      }
      %c = random_uniform(%n, dtype=f32)
      return %b, %c
    })",
                                {Tensor::scalar(int64_t{3})});
}

// Rows of many numbers, each divided by one: where that is done by the reciprocal, it is rounded all the
// same.
TEST(Numerics, DividesByOneNumberAsByMany) {
  std::vector<double> divisors{1,    3,      -7,       0.1,        1e-3,        0x1.fffffep0,   0x1.000002p0,
                               1e30, -1e-30, 0x1p-149, 0x1.8p-140, 0x1p-126,    0x1.fffffep127, 0x1p126,
                               0.0,  -0.0,   HUGE_VAL, -HUGE_VAL,  std::nan("")};
  std::vector<double> numbers{0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1, 1e38, -1e38, 0x1p-90, 1e-20};
  uint64_t seed = 1;
  const auto draw = [&] {
    seed = seed * 6364136223846793005 + 1442695040888963407;
    const auto mantissa = static_cast<double>((seed >> 40) + (1 << 24));
    return std::ldexp(static_cast<float>(mantissa), static_cast<int>(seed % 61) - 60);
  };
  while (divisors.size() < 200)
    divisors.push_back(draw());
  while (numbers.size() < 100)
    numbers.push_back(draw());
  const auto rows = static_cast<int64_t>(divisors.size()), columns = static_cast<int64_t>(numbers.size());
  const auto graph = parse_graph(
      fmt::format("graph(%x: f32[1,{}], %d: f32[{},1]) {{ %y = div(%x, %d) return %y }}", columns, rows));
  const Data inputs{tensor(DType::F32, {1, columns}, numbers), tensor(DType::F32, {rows, 1}, divisors)};
  expect_tensor(compile(*graph, here())->run(inputs)[0], evaluate(*graph, inputs)[0].tensor());
}

// They make products slow, and nothing of them is seen beside larger numbers.
TEST(Numerics, TakesSubnormalsForZeroInProductsUnlessStrict) {
  const auto graph = parse_graph(R"(graph(%x: f32[4,64], %w: f32[64,32]) {
    %p = matmul(%x, %w) return %p })");
  const Data inputs{tensor(DType::F32, {4, 64}, std::vector<double>(256, 1e-40)),
                    tensor(DType::F32, {64, 32}, std::vector<double>(2048, 1e30))};
  CompileContext options = here();
  const auto product = [&] {
    return widen<double>(compile(*graph, options)->run(inputs)[0].tensor()).front();
  };
  EXPECT_EQ(product(), 0);
  options.numerics = NumericsBudget::Strict;
  EXPECT_NEAR(product(), 64e-10, 1e-13);
}

// Where a mask leaves so little of a score that its exponential is subnormal.
TEST(Numerics, AttendsWithSubnormalWeightsAsTheReferenceDoes) {
  const auto graph =
      parse_graph(R"(graph(%q: f32[1,2,32,16], %k: f32[1,2,32,16], %v: f32[1,2,32,16], %m: f32[32,32]) {
    %y = attention(%q, %k, %v, %m, scale=0.25) return %y })");
  Data inputs;
  for (int i = 0; i < 3; ++i) {
    std::vector<double> values(1024);
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = std::sin(static_cast<double>(k) * (i + 1));
    inputs.push_back(tensor(DType::F32, {1, 2, 32, 16}, values));
  }
  std::vector<double> mask(1024);
  for (size_t k = 0; k < mask.size(); ++k)
    mask[k] = (k / 32 + k % 32) % 2 == 0 ? 0 : -100;
  inputs.push_back(tensor(DType::F32, {32, 32}, mask));
  const std::vector<double> got = widen<double>(compile(*graph, here())->run(inputs)[0].tensor()),
                            wanted = widen<double>(evaluate(*graph, inputs)[0].tensor());
  for (size_t k = 0; k < wanted.size(); ++k)
    EXPECT_NEAR(got[k], wanted[k], 1e-6);
}

}  // namespace
}  // namespace tenon
