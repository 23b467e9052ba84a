#include "ops/random.h"

#include <cmath>

#include "base/philox.h"
#include "ir/graph_text.h"
#include "ops/data.h"

namespace tenon {
namespace {

std::vector<double> draw(std::string_view op, std::string_view attributes, int64_t count = 4000,
                         uint64_t seed = 0) {
  const auto graph =
      parse_graph(fmt::format("graph(%s: i64[1]) {{ %y = {}(%s{}) return %y }}", op, attributes));
  return widen<double>(
      evaluate(*graph, {i64({1}, {static_cast<double>(count)})}, {.seed = seed})[0].tensor());
}

struct Moments {
  double mean, deviation;
};
Moments moments(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (double value : values) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(values.size());
  return {sum / count, std::sqrt(squares / count - sum / count * (sum / count))};
}

TEST(Random, UniformNumbersFillTheirRange) {
  const std::vector<double> y = draw("random_uniform", ", dtype=f64, low=-1.0, high=3.0");
  for (double value : y)
    EXPECT_TRUE(value >= -1 && value < 3) << value;
  EXPECT_NEAR(moments(y).mean, 1, 0.1);
  EXPECT_NEAR(moments(y).deviation, 4 / std::sqrt(12), 0.1);
}

TEST(Random, NormalNumbersHaveTheirMoments) {
  const std::vector<double> y = draw("random_normal", ", dtype=f32, mean=5.0, deviation=2.0");
  EXPECT_NEAR(moments(y).mean, 5, 0.2);
  EXPECT_NEAR(moments(y).deviation, 2, 0.2);
}

TEST(Random, ASeedOfItsOwnFixesTheNumbers) {
  const auto seeded = [](uint64_t evaluator) {
    return draw("random_uniform", ", dtype=f64, seed=7", 3, evaluator);
  };
  const auto unseeded = [](uint64_t evaluator) {
    return draw("random_uniform", ", dtype=f64", 3, evaluator);
  };
  EXPECT_EQ(seeded(1), seeded(2));
  EXPECT_NE(unseeded(1), unseeded(2));
  EXPECT_EQ(unseeded(1), unseeded(1));
}

TEST(Random, TwoDrawsOfOneRunDiffer) {
  const Data y = run_text(R"(
    graph() {
      %s = constant(value=i64[1] {8})
      %a = random_uniform(%s, dtype=f32)
      %b = random_uniform(%s, dtype=f32)
      return %a, %b
    })",
                          {});
  EXPECT_FALSE(identical(y[0].tensor(), y[1].tensor()));
}

// Element i of call n is Philox of the seed, n and i; calls of the evaluator are numbered from 1.
TEST(Random, DrawsByCounter) {
  const auto bits = [](uint64_t seed, uint64_t call, uint64_t element) {
    return static_cast<double>(philox(seed, call, element)[0] >> 11) * 0x1p-53;
  };
  EXPECT_EQ(draw("random_uniform", ", dtype=f64", 3, 5),
            (std::vector<double>{bits(5, 1, 0), bits(5, 1, 1), bits(5, 1, 2)}));
  EXPECT_EQ(draw("random_uniform", ", dtype=f64, seed=7", 2, 5),
            (std::vector<double>{bits(7, 0, 0), bits(7, 0, 1)}));
}

// The first 24 bits of what f64 has, which f32 holds.
TEST(Random, NarrowFloatsAreThoseOfF64CutShort) {
  const std::vector<double> wide = draw("random_uniform", ", dtype=f64"),
                            narrow = draw("random_uniform", ", dtype=f32");
  for (size_t i = 0; i < wide.size(); ++i)
    ASSERT_EQ(narrow[i], std::floor(wide[i] * 0x1p24) * 0x1p-24);
}

TEST(Random, CallsAreIndependent) {
  const Data y = run_text(R"(
    graph() {
      %s = constant(value=i64[1] {20000})
      %a = random_normal(%s, dtype=f64)
      %b = random_normal(%s, dtype=f64)
      return %a, %b
    })",
                          {});
  const std::vector<double> a = widen<double>(y[0].tensor()), b = widen<double>(y[1].tensor());
  double product = 0, behind = 0;
  for (size_t i = 0; i + 1 < a.size(); ++i) {
    product += a[i] * b[i];
    behind += a[i] * a[i + 1];
  }
  EXPECT_NEAR(product / 20000, 0, 0.03);
  EXPECT_NEAR(behind / 20000, 0, 0.03);
  EXPECT_NEAR(moments(a).mean, 0, 0.03);
  EXPECT_NEAR(moments(a).deviation, 1, 0.03);
}

TEST(Random, IsAKeyAndWhatIsDrawnByIt) {
  for (const std::string_view text : {"random_uniform(%s, dtype=f32, low=-1.0, high=2.0",
                                      "random_normal(%s, dtype=f64, mean=3.0, deviation=2.0"}) {
    const std::string op(text.substr(7, text.find('(') - 7));  // after random_
    const std::string by_key = fmt::format("philox_{}(%k, {}", op, text.substr(text.find('(') + 1));
    const Data inputs = {i64({1}, {50})};
    const auto run = [&](const std::string& nodes) {
      const auto graph = parse_graph(fmt::format("graph(%s: i64[1]) {{ {}) return %y }}", nodes));
      return widen<double>(evaluate(*graph, inputs, {.seed = 3})[0].tensor());
    };
    EXPECT_EQ(run(fmt::format("%k = random_key() %y = {}", by_key)), run(fmt::format("%y = {}", text)));
    EXPECT_EQ(run(fmt::format("%k = constant(value=u64[2] {{9, 0}}) %y = {}", by_key)),
              run(fmt::format("%y = {}, seed=9", text)));
  }
}

TEST(Random, RefusesAKeyThatIsNone) {
  expect_error<UserError>(
      [] {
        parse_graph("graph(%k: u64[3], %s: i64[1]) { %y = philox_normal(%k, %s, dtype=f32) return %y }");
      },
      "line 1, column 38: philox_normal: key must hold two numbers, a seed and that of a call\n"
      "  key  %k: u64[3]\n  shape  %s: i64[1]");
}

TEST(Random, IsNotKnownBeforeItRuns) {
  const auto graph = parse_graph(
      "graph() { %s = constant(value=i64[1] {8}) %y = random_uniform(%s, dtype=f32, seed=1) return %y }");
  EXPECT_EQ(graph->outputs()[0].known_tensor(), nullptr);
}

TEST(Random, InfersShapes) {
  EXPECT_EQ(output_type("graph(%x: f32[n,4]) { %s = shape(%x) %y = random_normal(%s, dtype=f16) return %y }"),
            "f16[n,4]");
  EXPECT_EQ(output_type("graph(%s: i64[2]) { %y = random_normal(%s, dtype=f16) return %y }"), "f16[d0,d1]");
  EXPECT_EQ(output_type("graph(%s: i64[n]) { %y = random_normal(%s, dtype=f16) return %y }"), "f16[*]");
}

TEST(Random, RefusesWhatIsNoShapeOrFloat) {
  expect_error<UserError>(
      [] { parse_graph("graph(%s: i64[1]) { %y = random_normal(%s, dtype=i32) return %y }"); },
      "line 1, column 26: random_normal: dtype must be a float, but is i32");
  expect_error<UserError>(
      [] { parse_graph("graph(%s: i64[]) { %y = random_normal(%s, dtype=f32) return %y }"); },
      "line 1, column 25: random_normal: shape must be a vector\n  shape  %s: i64[]");
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph() { %s = constant(value=i64[1] {-2}) %y = random_normal(%s, dtype=f32) return %y }");
      },
      "line 1, column 49: random_normal: shape[0] is -2\n  shape  %s: i64[1]");
}

Data multinomial(const Tensor& logits, double samples) {
  return run_text(fmt::format("graph(%x: {}, %n: i64[]) {{ %y = multinomial(%x, %n, dtype=i32) return %y }}",
                              type_of(logits)),
                  {logits, i64({}, {samples})});
}

TEST(Multinomial, DrawsInProportion) {
  const double impossible = -INFINITY;
  const Tensor y =
      multinomial(f32({2, 3}, {std::log(1e30), impossible, std::log(3e30), impossible, -900, impossible}),
                  4000)[0]
          .tensor();
  EXPECT_EQ(to_string(type_of(y)), "i32[2,4000]");
  const std::vector<int64_t> drawn = as_ints(y);
  EXPECT_EQ(std::count(drawn.begin(), drawn.begin() + 4000, 1), 0);
  EXPECT_NEAR(static_cast<double>(std::count(drawn.begin(), drawn.begin() + 4000, 2)), 3000, 150);
  EXPECT_EQ(std::count(drawn.begin() + 4000, drawn.end(), 1), 4000);
  EXPECT_EQ(to_string(type_of(multinomial(f32({0, 3}, {}), 2)[0])), "i32[0,2]");
}

TEST(Multinomial, RefusesARowOfNothing) {
  for (const double logit : {-static_cast<double>(INFINITY), std::nan("")})
    expect_error<UserError>(
        [&] {
          multinomial(f32({2, 1}, {0, logit}), 1);
        },
        "node %y: multinomial: row 1 of logits has no outcome that could be drawn");
}

TEST(Multinomial, RefusesANumberOfSamplesThatIsNone) {
  expect_error<UserError>(
      [] {
        multinomial(f32({1, 1}, {0}), -1);
      },
      "node %y: multinomial: samples is -1, but must be at least 0");
}

TEST(Bernoulli, IsCertainAtTheEnds) {
  register_ops();
  Graph graph;
  const Value p = graph.add_input(Type::tensor(DType::F16, {3000}), "p");
  graph.set_outputs({bernoulli(p)});
  const auto hits = [&](double probability) {
    const Data y = evaluate(graph, {filled(DType::F16, {3000}, probability)});
    const std::vector<int64_t> bits = as_ints(y[0].tensor());
    return std::count(bits.begin(), bits.end(), 1);
  };
  EXPECT_EQ(hits(0), 0);
  EXPECT_EQ(hits(1), 3000);
  EXPECT_NEAR(static_cast<double>(hits(0.25)), 750, 100);
}

}  // namespace
}  // namespace tenon
