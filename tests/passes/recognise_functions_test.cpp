// Every spelling of a function that exporters are known for must become that function's one node.
#include "passes/expect_pass.h"
#include "passes/pipeline.h"

namespace tenon {
namespace {

// The graph after the whole pipeline, whose output must still be the same within `tolerance`.
std::unique_ptr<Graph> optimised(std::string_view text) {
  std::unique_ptr<Graph> graph = parse_graph(text);
  Journal journal;
  optimize(*graph, journal, {.lint_everything = true});
  return graph;
}

// Both become the same graph.
void expect_same(std::string_view spelling, std::string_view wanted) {
  const std::unique_ptr<Graph> graph = optimised(spelling), expected = optimised(wanted);
  EXPECT_EQ(difference(*graph, *expected), "") << print(*graph);
}

// The spelling, a graph of one input %x, becomes `node`.
void expect_becomes(std::string_view spelling, std::string_view node, std::string_view x = "f32[n,4]") {
  expect_same(fmt::format("graph g(%x: {}) {{ {} return %y }}", x, spelling),
              fmt::format("graph g(%x: {}) {{ %y = {} return %y }}", x, node));
}

int64_t count(const Graph& graph, std::string_view op) {
  int64_t found = 0;
  for (const Node* node : graph.nodes())
    found += node->is(op);
  return found;
}

// The spelling does not become a node of this op.
void expect_no(std::string_view op, std::string_view spelling, std::string_view x = "f32[n,4]") {
  const auto graph = optimised(fmt::format("graph g(%x: {}) {{ {} return %y }}", x, spelling));
  EXPECT_EQ(count(*graph, op), 0) << print(*graph);
}

TEST(RecogniseFunctions, GeluInEveryFactoring) {
  const std::string constants =
      "%h = constant(value=f32[] {0.5}) %1 = constant(value=f32[] {1}) "
      "%r = constant(value=f32[] {1.4142135}) %s = constant(value=f32[1] {0.70710677}) ";
  for (const char* rest : {
           "%0 = div(%x, %r) %2 = erf(%0) %3 = add(%2, %1) %4 = mul(%x, %3) %y = mul(%4, %h)",
           "%0 = mul(%s, %x) %2 = erf(%0) %3 = add(%1, %2) %4 = mul(%h, %x) %y = mul(%3, %4)",
           "%0 = mul(%x, %s) %2 = erf(%0) %3 = mul(%2, %h) %4 = add(%3, %h) %y = mul(%x, %4)",
           "%0 = div(%x, %r) %2 = erf(%0) %3 = mul(%x, %2) %4 = add(%x, %3) %y = mul(%4, %h)",
           "%0 = div(%x, %r) %2 = erf(%0) %a = mul(%x, %h) %3 = mul(%a, %2) %y = add(%a, %3)",
           // Φ(x) as 1 - erfc(x/√2)/2 is spelled where there is no erfc.
           "%0 = div(%x, %r) %2 = erf(%0) %3 = sub(%1, %2) %4 = mul(%3, %h) %5 = sub(%1, %4) %y = mul(%x, "
           "%5)",
           "%n = neg(%x) %0 = div(%n, %r) %2 = erf(%0) %3 = sub(%1, %2) %4 = mul(%x, %h) %y = mul(%4, %3)",
       })
    expect_becomes(constants + rest, "gelu(%x)");
}

TEST(RecogniseFunctions, GeluByItsTanhFormula) {
  const std::string constants =
      "%h = constant(value=f32[] {0.5}) %1 = constant(value=f32[] {1}) %2 = constant(value=f32[] {2}) "
      "%3 = constant(value=f32[] {3}) %k = constant(value=f32[] {0.7978846}) "
      "%c = constant(value=f32[] {0.044715}) %kk = constant(value=f32[] {1.5957691216}) ";
  for (const char* rest : {
           "%a = pow(%x, %3) %b = mul(%a, %c) %d = add(%x, %b) %e = mul(%d, %k) %t = tanh(%e) "
           "%f = add(%t, %1) %i = mul(%x, %h) %y = mul(%i, %f)",
           "%a = mul(%x, %x) %b = mul(%c, %a) %d = add(%1, %b) %e = mul(%x, %k) %f = mul(%e, %d) "
           "%t = tanh(%f) %i = add(%t, %1) %j = mul(%i, %h) %y = mul(%x, %j)",
           // x · sigmoid(2z) is x · (1 + tanh(z)) / 2.
           "%a = mul(%x, %x) %b = mul(%a, %x) %d = mul(%b, %c) %e = add(%d, %x) %f = mul(%e, %kk) "
           "%s = sigmoid(%f) %y = mul(%x, %s)",
           // tanh(z) as 2 · sigmoid(2z) - 1.
           "%a = mul(%x, %x) %b = mul(%a, %x) %d = mul(%b, %c) %e = add(%d, %x) %f = mul(%e, %k) "
           "%g2 = mul(%f, %2) %s = sigmoid(%g2) %s2 = mul(%s, %2) %t = sub(%s2, %1) %i = add(%t, %1) "
           "%j = mul(%x, %i) %y = mul(%j, %h)",
       })
    expect_becomes(constants + rest, "gelu(%x, approximate=\"tanh\")");
}

TEST(RecogniseFunctions, GeluInHalfPrecision) {
  const char* body =
      "%h = constant(value=f16[] {0.5}) %1 = constant(value=f16[] {1}) %r = constant(value=f16[] {1.4142}) "
      "%0 = div(%x, %r) %2 = erf(%0) %3 = add(%2, %1) %4 = mul(%x, %3) %y = mul(%4, %h)";
  expect_becomes(body, "gelu(%x)", "f16[n,4]");
  expect_becomes("%0 = cast(%x, to=f32) %1 = gelu(%0) %y = cast(%1, to=f16)", "gelu(%x)", "f16[n,4]");
}

TEST(RecogniseFunctions, SiluAndQuickGelu) {
  const std::string constants = "%c = constant(value=f32[] {1.702}) %1 = constant(value=f32[] {1}) ";
  expect_becomes("%0 = sigmoid(%x) %y = mul(%0, %x)", "silu(%x)");
  expect_becomes(constants + "%0 = neg(%x) %2 = exp(%0) %3 = add(%2, %1) %y = div(%x, %3)", "silu(%x)");
  expect_becomes(constants + "%0 = mul(%x, %c) %2 = sigmoid(%0) %y = mul(%x, %2)",
                 "silu(%x, alpha=1.7020000219345093)");
  expect_no("silu", constants + "%0 = add(%x, %c) %2 = sigmoid(%0) %y = mul(%x, %2)");
}

// The half of gelu, and whatever else a product has of numbers, is gathered at its end.
TEST(RecogniseFunctions, ActivationsTimesANumber) {
  const std::string gated = "graph g(%x: f32[n,4], %z: f32[n,4]) {{ {} return %y }}";
  const std::string constants =
      "%h = constant(value=f32[] {0.5}) %r = constant(value=f32[] {0.70710678}) %1 = constant(value=f32[] "
      "{1}) ";
  expect_same(fmt::format(fmt::runtime(gated),
                          constants + "%0 = mul(%x, %r) %2 = erf(%0) %3 = add(%2, %1) %4 = mul(%x, %3) "
                                      "%5 = mul(%4, %h) %y = mul(%5, %z)"),
              fmt::format(fmt::runtime(gated), "%0 = gelu(%x) %y = mul(%0, %z)"));
  expect_becomes(constants + "%0 = mul(%x, %h) %2 = tanh(%0) %3 = add(%2, %1) %y = mul(%0, %3)", "silu(%x)");
  expect_same(
      "graph g(%x: f32[n,4]) { %3 = constant(value=f32[] {3}) %0 = gelu(%x) %y = mul(%0, %3) return %y }",
      "graph g(%x: f32[n,4]) { %3 = constant(value=f32[] {3}) %0 = gelu(%x) %y = mul(%3, %0) return %y }");
}

TEST(RecogniseFunctions, OtherActivations) {
  const std::string constants =
      "%z = constant(value=f32[] {0}) %1 = constant(value=f32[] {1}) %2 = constant(value=f32[] {2}) "
      "%3 = constant(value=f32[] {3}) %6 = constant(value=f32[] {6}) %a = constant(value=f32[] {0.25}) "
      "%h = constant(value=f32[] {0.5}) %s = constant(value=f32[] {0.16666667}) ";
  const auto becomes = [&](const std::string& spelling, std::string_view node) {
    expect_becomes(constants + spelling, node);
  };
  becomes("%0 = exp(%x) %4 = add(%0, %1) %y = log(%4)", "softplus(%x)");
  becomes("%0 = exp(%x) %4 = add(%0, %1) %5 = log(%4) %7 = tanh(%5) %y = mul(%7, %x)", "mish(%x)");
  // Darknet's mish, without tanh and log.
  becomes("%e = exp(%x) %0 = add(%e, %2) %n = mul(%e, %0) %d = add(%n, %2) %q = div(%n, %d) %y = mul(%x, %q)",
          "mish(%x)");
  becomes("%0 = exp(%x) %4 = neg(%x) %5 = exp(%4) %7 = sub(%0, %5) %8 = add(%0, %5) %y = div(%7, %8)",
          "tanh(%x)");
  becomes("%0 = neg(%x) %4 = exp(%0) %5 = add(%1, %4) %y = reciprocal(%5)", "sigmoid(%x)");
  becomes("%0 = mul(%x, %h) %4 = tanh(%0) %5 = mul(%4, %h) %y = add(%5, %h)", "sigmoid(%x)");
  becomes("%0 = add(%x, %3) %4 = relu(%0) %5 = min(%4, %6) %7 = mul(%x, %5) %y = mul(%7, %s)",
          "hard_swish(%x)");
  becomes("%0 = hard_sigmoid(%x, alpha=0.1666666716337204, beta=0.5) %y = mul(%x, %0)", "hard_swish(%x)");
  becomes("%0 = add(%x, %3) %4 = clip(%0, %z, %6) %5 = div(%4, %6) %y = mul(%5, %x)", "hard_swish(%x)");
  becomes("%0 = mul(%x, %a) %4 = add(%0, %h) %y = clip(%4, %z, %1)", "hard_sigmoid(%x, alpha=0.25)");
  becomes("%0 = mul(%x, %a) %y = max(%0, %x)", "leaky_relu(%x, alpha=0.25)");
  becomes("%0 = relu(%x) %n = neg(%x) %4 = relu(%n) %5 = mul(%4, %a) %y = sub(%0, %5)",
          "leaky_relu(%x, alpha=0.25)");
  becomes("%c = less(%x, %z) %0 = mul(%x, %a) %y = where(%c, %0, %x)", "leaky_relu(%x, alpha=0.25)");
  becomes("%0 = exp(%x) %4 = sub(%0, %1) %c = greater(%x, %z) %y = where(%c, %x, %4)", "elu(%x)");
  becomes("%m = min(%x, %z) %0 = exp(%m) %4 = sub(%0, %1) %r = relu(%x) %y = add(%r, %4)", "elu(%x)");
}

TEST(RecogniseFunctions, Limits) {
  const std::string constants =
      "%z = constant(value=f32[] {0}) %6 = constant(value=f32[] {6}) %8 = constant(value=f32[] {8}) ";
  const auto becomes = [&](const std::string& spelling, const std::string& rest) {
    expect_same(fmt::format("graph g(%x: f32[n,4]) {{ {} {} return %y }}", constants, spelling),
                fmt::format("graph g(%x: f32[n,4]) {{ {} {} return %y }}", constants, rest));
  };
  becomes("%y = max(%z, %x)", "%y = relu(%x)");
  becomes("%y = clip(%x, %z)", "%y = relu(%x)");
  becomes("%c = less(%x, %z) %y = where(%c, %z, %x)", "%y = relu(%x)");
  becomes("%0 = abs(%x) %1 = add(%0, %x) %2 = constant(value=f32[] {0.5}) %3 = clip(%1, %z) %y = mul(%3, %2)",
          "%y = relu(%x)");
  becomes("%0 = relu(%x) %y = clip(%0, %z, %6)", "%y = clip(%x, %z, %6)");
  becomes("%0 = clip(%x, %z, %8) %y = clip(%0, %z, %6)", "%y = clip(%x, %z, %6)");
  becomes("%0 = min(%x, %6) %y = max(%0, %z)", "%y = clip(%x, %z, %6)");
}

// NaN would become 0.
// However small its numbers are, a function is told from others.
TEST(RecogniseFunctions, TellsSmallFunctionsApart) {
  const auto graph = optimised(R"(graph g(%x: f32[n,4]) {
    %0 = constant(value=f32[] {0}) %6 = constant(value=f32[] {6}) %s = constant(value=f32[] {1e-9})
    %c = clip(%x, %0, %6) %y = mul(%c, %s) return %y })");
  EXPECT_EQ(count(*graph, "clip"), 1);
  EXPECT_EQ(count(*graph, "mul"), 1) << print(*graph);
}

TEST(RecogniseFunctions, ReluIsNotWhatMakesNaNZero) {
  expect_no("relu", "%z = constant(value=f32[] {0}) %c = greater(%x, %z) %y = where(%c, %x, %z)");
}

TEST(RecogniseFunctions, LeavesTheAbsoluteValueAlone) {
  expect_unchanged(recognise_functions, "graph g(%x: f32[n,4]) { %y = abs(%x) return %y }");
}

// Functions that are the same for most numbers are not the same.
TEST(RecogniseFunctions, LooksWhereFunctionsDiffer) {
  // A limit that grows beyond all numbers.
  expect_no("clip", "%0 = neg(%x) %1 = exp(%0) %y = max(%x, %1)");
  // The sum is below 1 where all numbers are far below 0.
  const auto kept =
      optimised("graph g(%x: f32[n,4]) { %0 = reduce_log_sum_exp(%x, axes=[1]) %y = relu(%0) return %y }");
  EXPECT_EQ(count(*kept, "relu"), 1);
  // A number that stands out from its row, or a large scale, reaches the limit.
  const auto limited = optimised(
      "graph g(%x: f32[n,64]) { %g = parameter(name=\"g\", value=f32[64] splat 1) "
      "%l = constant(value=f32[] {-6}) %h = constant(value=f32[] {6}) %0 = layer_norm(%x, %g) "
      "%y = clip(%0, %l, %h) return %y }");
  EXPECT_EQ(count(*limited, "clip"), 1);
  // Nothing is a norm with an epsilon that outweighs everything.
  expect_no("layer_norm",
            "%0 = softmax(%x) %m = reduce_mean(%0, axes=[1], keep_dims=true) "
            "%z = constant(value=f32[] {-0}) %2 = mul(%x, %z) %1 = reduce_mean(%2, axes=[1], "
            "keep_dims=true) %y = mul(%2, %1)");
}

// What divides by this, or takes its log, needs the epsilon.
TEST(RecogniseFunctions, KeepsAnEpsilonThatIsAdded) {
  const std::string epsilon = "%e = constant(value=f32[] {1e-12}) ";
  const auto graph = optimised(
      "graph g(%x: f32[n,4]) { %e = constant(value=f32[] {1e-12}) %1 = constant(value=f32[] {1}) "
      "%0 = neg(%x) %2 = exp(%0) %3 = add(%2, %1) %4 = reciprocal(%3) %5 = add(%4, %e) %y = log(%5) "
      "return %y }");
  EXPECT_EQ(count(*graph, "add"), 1) << print(*graph);
  expect_no("log_softmax", epsilon + "%0 = softmax(%x) %1 = add(%0, %e) %y = log(%1)");
}

// (x + 1.5 · 2²³) - 1.5 · 2²³ rounds.
TEST(RecogniseFunctions, SeesWhatRoundsOnPurpose) {
  const auto graph = optimised(
      "graph g(%x: f32[n,4]) { %m = constant(value=f32[] {12582912}) %z = constant(value=f32[] {0}) "
      "%0 = add(%x, %m) %1 = relu(%0) %2 = sub(%1, %m) %3 = max(%2, %z) %4 = constant(value=f32[] {6}) "
      "%y = min(%3, %4) return %y }");
  EXPECT_GE(count(*graph, "add"), 1) << print(*graph);
}

TEST(RecogniseFunctions, Softmax) {
  const std::string sum = "%s = reduce_sum(%e, axes=[-1], keep_dims=true) ";
  expect_becomes("%e = exp(%x) " + sum + "%y = div(%e, %s)", "softmax(%x)");
  expect_becomes("%m = reduce_max(%x, axes=[1], keep_dims=true) %0 = sub(%x, %m) %e = exp(%0) " + sum +
                     "%r = reciprocal(%s) %y = mul(%e, %r)",
                 "softmax(%x)");
  expect_becomes("%0 = softmax(%x, axis=0) %y = log(%0)", "log_softmax(%x, axis=-2)");
  expect_becomes("%m = reduce_max(%x, axes=[-1], keep_dims=true) %0 = sub(%x, %m) %e = exp(%0) " + sum +
                     "%l = log(%s) %y = sub(%0, %l)",
                 "log_softmax(%x)");
  expect_becomes("%m = reduce_max(%x, axes=[-1], keep_dims=true) %0 = sub(%x, %m) %e = exp(%0) " + sum +
                     "%l = log(%s) %y = add(%l, %m)",
                 "reduce_log_sum_exp(%x, axes=[1], keep_dims=true)");
  // Zeros, and not NaN, where a mask left nothing of a row.
  expect_unchanged(recognise_functions,
                   "graph g(%x: f32[n,4]) { %zero = constant(value=f32[] {0}) "
                   "%m = reduce_max(%x, axes=[1], keep_dims=true) %none = is_inf(%m, positive=false) "
                   "%0 = softmax(%x) %y = where(%none, %zero, %0) return %y }");
  expect_no("softmax", "%e = exp(%x) %s = reduce_mean(%e, axes=[1], keep_dims=true) %y = div(%e, %s)");
}

const std::string kParameters =
    "%g = parameter(name=\"g\", value=f32[4] {1, 2, 3, 4}) %b = parameter(name=\"b\", value=f32[4] {5, 6, 7, "
    "8}) %e = constant(value=f32[] {1e-05}) %h = constant(value=f32[] {-0.5}) %4 = constant(value=f32[] {4}) "
    "%two = constant(value=f32[] {2}) %z = constant(value=f32[] {0}) ";

void expect_layer_norm(const std::string& spelling, std::string_view operands = "%x, %g, %b",
                       std::string_view x = "f32[n,m,4]") {
  expect_same(fmt::format("graph g(%x: {}) {{ {} {} return %y }}", x, kParameters, spelling),
              fmt::format("graph g(%x: {}) {{ {} %y = layer_norm({}, epsilon=9.999999747378752e-06) "
                          "return %y }}",
                          x, kParameters, operands));
}

TEST(RecogniseFunctions, LayerNorm) {
  const std::string mean = "%m = reduce_mean(%x, axes=[-1], keep_dims=true) ";
  const std::string centred = mean + "%c = sub(%x, %m) ";
  const std::string variance =
      centred + "%sq = mul(%c, %c) %v = reduce_mean(%sq, axes=[-1], keep_dims=true) ";
  const std::string deviation = variance + "%ve = add(%v, %e) %d = sqrt(%ve) ";
  // PyTorch's exporter before opset 17, with Pow; and its decomposition, with rsqrt.
  expect_layer_norm(centred +
                    "%sq = pow(%c, %two) %v = reduce_mean(%sq, axes=[2], keep_dims=true) "
                    "%ve = add(%v, %e) %d = sqrt(%ve) %n = div(%c, %d) %s = mul(%n, %g) %y = add(%s, %b)");
  expect_layer_norm(deviation + "%r = reciprocal(%d) %n = mul(%c, %r) %s = mul(%g, %n) %y = add(%b, %s)");
  // The scale before the division; the variance to a power.
  expect_layer_norm(deviation + "%s = mul(%g, %c) %n = div(%s, %d) %y = add(%n, %b)");
  expect_layer_norm(variance +
                    "%ve = add(%v, %e) %p = pow(%ve, %h) %n = mul(%c, %p) %s = mul(%n, %g) "
                    "%y = add(%s, %b)");
  // Keras: x · k + (b - m · k) with k = g / deviation.
  expect_layer_norm(deviation +
                    "%r = reciprocal(%d) %k = mul(%r, %g) %xk = mul(%x, %k) %mk = mul(%m, %k) "
                    "%o = sub(%b, %mk) %y = add(%xk, %o)");
  // Flax: the variance as mean(x²) - mean², not below 0.
  expect_layer_norm(mean +
                    "%x2 = mul(%x, %x) %m2 = reduce_mean(%x2, axes=[-1], keep_dims=true) "
                    "%mm = mul(%m, %m) %w = sub(%m2, %mm) %v = max(%w, %z) %ve = add(%v, %e) "
                    "%d = sqrt(%ve) %c = sub(%x, %m) %r = reciprocal(%d) %k = mul(%r, %g) "
                    "%s = mul(%c, %k) %y = add(%s, %b)");
  // Sums divided by the size.
  expect_layer_norm(
      "%t = reduce_sum(%x, axes=[-1], keep_dims=true) %m = div(%t, %4) %c = sub(%x, %m) "
      "%sq = mul(%c, %c) %u = reduce_sum(%sq, axes=[-1], keep_dims=true) %v = div(%u, %4) "
      "%ve = add(%v, %e) %d = sqrt(%ve) %n = div(%c, %d) %s = mul(%n, %g) %y = add(%s, %b)");
  // Without a scale, a bias or both.
  expect_layer_norm(deviation + "%y = div(%c, %d)", "%x");
  expect_layer_norm(deviation + "%n = div(%c, %d) %y = mul(%n, %g)", "%x, %g");
  expect_layer_norm(deviation + "%n = div(%c, %d) %y = add(%n, %b)", "%x, bias=%b");
}

// As exporters write it that know no keep_dims, and spread everything to the size of x.
// Also where what is added lifts most of it above 0.
TEST(RecogniseFunctions, SeesWhatIsCutOffBehindANorm) {
  const auto graph = optimised(R"(graph g(%x: f32[6,1]) {
    %m = reduce_mean(%x, axes=[0, 1], keep_dims=true) %d = sub(%x, %m) %q = mul(%d, %d)
    %v = reduce_mean(%q, axes=[0, 1], keep_dims=true) %e = constant(value=f32[] {1e-12}) %s = add(%v, %e)
    %r = sqrt(%s) %n = div(%d, %r) %w = parameter(name="w", value=f32[1] {-0.5}) %b = add(%n, %w)
    %y = relu(%b) return %y })");
  EXPECT_EQ(count(*graph, "relu"), 1) << print(*graph);
  EXPECT_EQ(count(*graph, "layer_norm"), 1) << print(*graph);
}

TEST(RecogniseFunctions, LayerNormOfSpreadValues) {
  expect_layer_norm(
      "%s = shape(%x) %m0 = reduce_mean(%x, axes=[-1]) %m1 = unsqueeze(%m0, axes=[-1]) "
      "%m = broadcast(%m1, %s) %c = sub(%x, %m) %sq = mul(%c, %c) %v0 = reduce_mean(%sq, axes=[2]) "
      "%v = unsqueeze(%v0, axes=[2]) %ve = add(%v, %e) %d0 = sqrt(%ve) %d = broadcast(%d0, %s) "
      "%n = div(%c, %d) %gs = broadcast(%g, %s) %bs = broadcast(%b, %s) %t = mul(%n, %gs) %y = add(%t, %bs)");
}

// The variance of a sample, and then made that of all.
TEST(RecogniseFunctions, LayerNormByCorrectedVariance) {
  expect_layer_norm(
      "%three = constant(value=f32[] {3}) %m = reduce_mean(%x, axes=[-1], keep_dims=true) %c = sub(%x, %m) "
      "%sq = mul(%c, %c) %t = reduce_sum(%sq, axes=[-1], keep_dims=true) %u = div(%t, %three) "
      "%w = mul(%u, %three) %v = div(%w, %4) %ve = add(%v, %e) %d = sqrt(%ve) %y = div(%c, %d)",
      "%x");
}

TEST(RecogniseFunctions, LayerNormOverSeveralAxes) {
  expect_same(
      "graph g(%x: f32[n,3,4]) { %e = constant(value=f32[] {0.001}) "
      "%m = reduce_mean(%x, axes=[1, 2], keep_dims=true) %c = sub(%x, %m) %sq = mul(%c, %c) "
      "%v = reduce_mean(%sq, axes=[1, 2], keep_dims=true) %ve = add(%v, %e) %d = sqrt(%ve) %y = div(%c, %d) "
      "return %y }",
      "graph g(%x: f32[n,3,4]) { %y = layer_norm(%x, axis=-2, epsilon=0.0010000000474974513) return %y }");
}

TEST(RecogniseFunctions, LayerNormIsNotAnyNormalisation) {
  const std::string mean = kParameters + "%m = reduce_mean(%x, axes=[-1], keep_dims=true) %c = sub(%x, %m) ";
  const std::string square = mean + "%sq = mul(%c, %c) ";
  // The epsilon outside the root.
  expect_no("layer_norm", square +
                              "%v = reduce_mean(%sq, axes=[-1], keep_dims=true) %d = sqrt(%v) "
                              "%de = add(%d, %e) %y = div(%c, %de)");
  // The variance of a sample: divided by one less than the size.
  expect_no("layer_norm", square +
                              "%three = constant(value=f32[] {3}) %t = reduce_sum(%sq, axes=[-1], "
                              "keep_dims=true) %v = div(%t, %three) %ve = add(%v, %e) %d = sqrt(%ve) "
                              "%y = div(%c, %d)");
  // Mean and variance over different axes.
  expect_no("layer_norm", square +
                              "%v = reduce_mean(%sq, axes=[0], keep_dims=true) %ve = add(%v, %e) "
                              "%d = sqrt(%ve) %y = div(%c, %d)");
  expect_no("rms_norm", kParameters +
                            "%sq = mul(%x, %x) %v = reduce_mean(%sq, axes=[0], keep_dims=true) "
                            "%ve = add(%v, %e) %d = sqrt(%ve) %y = div(%x, %d)");
  // No root.
  expect_no("layer_norm", square +
                              "%v = reduce_mean(%sq, axes=[-1], keep_dims=true) %ve = add(%v, %e) "
                              "%y = div(%c, %ve)");
}

TEST(RecogniseFunctions, RmsNorm) {
  const auto becomes = [](const std::string& spelling, std::string_view operands = "%x, %g") {
    expect_same(fmt::format("graph g(%x: f32[n,4]) {{ {} {} return %y }}", kParameters, spelling),
                fmt::format("graph g(%x: f32[n,4]) {{ {} %y = rms_norm({}, epsilon=9.999999747378752e-06) "
                            "return %y }}",
                            kParameters, operands));
  };
  const std::string square =
      "%sq = mul(%x, %x) %v = reduce_mean(%sq, axes=[-1], keep_dims=true) %ve = add(%v, %e) ";
  becomes(square + "%d = sqrt(%ve) %n = div(%x, %d) %y = mul(%g, %n)");
  becomes(square + "%d = sqrt(%ve) %n = div(%x, %d) %y = mul(%n, %g)");
  becomes(square + "%p = pow(%ve, %h) %s = mul(%x, %g) %y = mul(%s, %p)");
  becomes(square + "%d = sqrt(%ve) %y = div(%x, %d)", "%x");
}

// As LLaMA does it: the scale comes after the result is f16 again.
TEST(RecogniseFunctions, NormsInAWiderDType) {
  expect_same(
      "graph g(%x: f16[n,4]) { %g = parameter(name=\"g\", value=f16[4] {1, 2, 3, 4}) "
      "%e = constant(value=f32[] {1e-06}) %w = cast(%x, to=f32) %sq = mul(%w, %w) "
      "%v = reduce_mean(%sq, axes=[-1], keep_dims=true) %ve = add(%v, %e) %d = sqrt(%ve) "
      "%r = reciprocal(%d) %n = mul(%w, %r) %c = cast(%n, to=f16) %y = mul(%g, %c) return %y }",
      "graph g(%x: f16[n,4]) { %g = parameter(name=\"g\", value=f16[4] {1, 2, 3, 4}) "
      "%y = rms_norm(%x, %g, epsilon=9.999999974752427e-07) return %y }");
}

constexpr std::string_view kChannels = R"(
  %g = parameter(name="g", value=f32[4,1,1] {1, 2, 3, 4})
  %b = parameter(name="b", value=f32[4,1,1] {5, 6, 7, 8})
  %gv = constant(value=f32[4] {1, 2, 3, 4}) %bv = constant(value=f32[4] {5, 6, 7, 8})
  %ones = constant(value=f32[2] {1, 1}) %zeros = constant(value=f32[2] {0, 0})
  %e = constant(value=f32[] {0.25}) %groups = constant(value=i64[3] {0, 2, -1})
  %back = constant(value=i64[4] {-1, 4, 3, 5}) )";

void expect_norm_of_channels(std::string_view spelling, std::string_view node) {
  expect_same(fmt::format("graph g(%x: f32[n,4,3,5]) {{ {} {} return %y }}", kChannels, spelling),
              fmt::format("graph g(%x: f32[n,4,3,5]) {{ {} %y = {} return %y }}", kChannels, node));
}

TEST(RecogniseFunctions, GroupNorm) {
  constexpr std::string_view wanted = "group_norm(%x, %gv, %bv, groups=2, epsilon=0.25)";
  // PyTorch's exporter.
  expect_norm_of_channels(
      "%0 = reshape(%x, %groups, allow_zero=false) %1 = instance_norm(%0, %ones, %zeros, epsilon=0.25) "
      "%s = shape(%x) %2 = reshape(%1, %s) %3 = mul(%2, %g) %y = add(%3, %b)",
      wanted);
  // Written out.
  expect_norm_of_channels(
      "%0 = reshape(%x, %groups, allow_zero=false) %m = reduce_mean(%0, axes=[2], keep_dims=true) "
      "%c = sub(%0, %m) %q = mul(%c, %c) %v = reduce_mean(%q, axes=[2], keep_dims=true) %w = add(%v, %e) "
      "%d = sqrt(%w) %1 = div(%c, %d) %2 = reshape(%1, %back) %3 = mul(%2, %g) %y = add(%3, %b)",
      wanted);
}

// As ConvNeXt and SAM do it.
TEST(RecogniseFunctions, LayerNormAcrossChannels) {
  expect_same(
      fmt::format("graph g(%x: f32[n,4,3,5]) {{ {} %m = reduce_mean(%x, axes=[1], keep_dims=true) "
                  "%c = sub(%x, %m) %q = mul(%c, %c) %v = reduce_mean(%q, axes=[1], keep_dims=true) "
                  "%w = add(%v, %e) %d = sqrt(%w) %1 = div(%c, %d) %3 = mul(%g, %1) %y = add(%3, %b) "
                  "return %y }}",
                  kChannels),
      "graph g(%x: f32[n,4,3,5]) { %0 = transpose(%x, permutation=[0, 2, 3, 1]) "
      "%g = constant(value=f32[4] {1, 2, 3, 4}) %b = constant(value=f32[4] {5, 6, 7, 8}) "
      "%1 = layer_norm(%0, %g, %b, epsilon=0.25) %y = transpose(%1, permutation=[0, 3, 1, 2]) return %y }");
}

TEST(RecogniseFunctions, InstanceNorm) {
  expect_norm_of_channels(
      "%m = reduce_mean(%x, axes=[2, 3], keep_dims=true) %c = sub(%x, %m) %q = mul(%c, %c) "
      "%v = reduce_mean(%q, axes=[2, 3], keep_dims=true) %w = add(%v, %e) %d = sqrt(%w) %1 = div(%c, %d) "
      "%3 = mul(%1, %g) %y = add(%3, %b)",
      "instance_norm(%x, %gv, %bv, epsilon=0.25)");
}

TEST(RecogniseFunctions, Rotary) {
  // As transformers' rotate_half does it, with tables of constants.
  const std::string spelling =
      "%0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) %9 = constant(value=i64[1] {99}) "
      "%cos = constant(value=f32[1,1,2,4] {1, 2, 1, 2, 3, 4, 3, 4}) "
      "%sin = parameter(name=\"sin\", value=f32[1,1,2,4] {5, 6, 5, 6, 7, 8, 7, 8}) "
      "%a = slice(%x, %0, %2, axes=[-1]) %b = slice(%x, %2, %9, axes=[-1]) %n = neg(%b) "
      "%r = concat([%n, %a], axis=-1) %c = mul(%x, %cos) %s = mul(%r, %sin) %y = add(%c, %s)";
  expect_same(fmt::format("graph g(%x: f32[n,3,2,4]) {{ {} return %y }}", spelling),
              "graph g(%x: f32[n,3,2,4]) { %cos = constant(value=f32[1,2,2] {1, 2, 3, 4}) "
              "%sin = constant(value=f32[1,2,2] {5, 6, 7, 8}) %y = rotary(%x, %cos, %sin) return %y }");
  // With sines that differ from half to half it is no turn.
  std::string other = spelling;
  other.replace(other.find("7, 8, 7, 8"), 10, "7, 8, 7, 9");
  expect_no("rotary", other, "f32[n,3,2,4]");
}

// The mean stays, since it is wanted; nothing else does.
TEST(RecogniseFunctions, KeepsWhatIsUsedBesides) {
  expect_same(
      "graph g(%x: f32[n,4]) { %e = constant(value=f32[] {0.5}) "
      "%m = reduce_mean(%x, axes=[-1], keep_dims=true) %c = sub(%x, %m) %sq = mul(%c, %c) "
      "%v = reduce_mean(%sq, axes=[-1], keep_dims=true) %ve = add(%v, %e) %d = sqrt(%ve) %y = div(%c, %d) "
      "return %y, %m }",
      "graph g(%x: f32[n,4]) { %m = reduce_mean(%x, axes=[-1], keep_dims=true) "
      "%y = layer_norm(%x, epsilon=0.5) return %y, %m }");
}

TEST(RecogniseFunctions, LeavesAReductionOverNoAxesAlone) {
  expect_unchanged(recognise_functions,
                   "graph g(%x: f32[2,8,4]) { %e = constant(value=f32[] {0.5}) "
                   "%m = reduce_mean(%x, axes=[], keep_dims=true) %0 = mul(%m, %m) %1 = add(%0, %e) "
                   "%2 = sqrt(%1) %y = div(%x, %2) return %y }");
}

TEST(RecogniseFunctions, NothingIfEveryBitMustStay) {
  expect_unchanged(recognise_functions,
                   "graph g(%x: f32[n,4]) { %0 = sigmoid(%x) %y = mul(%x, %0) return %y }",
                   NumericsBudget::Strict);
}

TEST(RecogniseFunctions, DoesNotComputeWithBits) {
  expect_unchanged(recognise_functions, R"(graph g(%x: f16[4]) {
    %0 = bit_cast(%x, to=bf16) %1 = bit_cast(%0, to=f16) %2 = mul(%1, %x) %3 = sigmoid(%2) return %3 })");
}

}  // namespace
}  // namespace tenon
