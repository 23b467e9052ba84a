#include <cmath>

#include "ir/graph_text.h"

namespace tenon {
namespace {

// A graph that calls a layer with operands by name; results are all that it has.
std::string call(std::string_view op, const std::vector<std::pair<std::string_view, Tensor>>& operands,
                 std::string_view attributes) {
  std::string inputs, arguments;
  for (const auto& [name, tensor] : operands) {
    const std::string_view comma = inputs.empty() ? "" : ", ";
    inputs += fmt::format("{}%{}: {}", comma, name, type_of(tensor));
    arguments += fmt::format("{}{}=%{}", comma, name, name);
  }
  const std::string_view results = op == "lstm" ? "%y, %h, %c" : "%y, %h";
  return fmt::format("graph({}) {{ {} = {}({}{}) return {} }}", inputs, results, op, arguments, attributes,
                     results);
}

Data run(std::string_view op, const std::vector<std::pair<std::string_view, Tensor>>& operands,
         std::string_view attributes) {
  Data data;
  for (const auto& [name, tensor] : operands)
    data.emplace_back(tensor);
  return run_text(call(op, operands, attributes), data);
}

// With the identity as activation, every state is a sum that can be done by hand.
constexpr std::string_view kLinear = R"(, activations=["affine"])";

TEST(Rnn, StepsForwardAndBackward) {
  const Tensor x = f32({3, 1, 1}, {1, 2, 3}), w = f32({1, 1, 1}, {2}), r = f32({1, 1, 1}, {0.5});
  const Tensor bias = f32({1, 2}, {1, 0.25}), h = f32({1, 1, 1}, {4});
  Data results = run("rnn", {{"x", x}, {"w", w}, {"r", r}, {"bias", bias}, {"initial_h", h}}, kLinear);
  expect_tensor(results[0], f32({3, 1, 1, 1}, {5.25, 7.875, 11.1875}));
  expect_tensor(results[1], f32({1, 1, 1}, {11.1875}));
  results = run("rnn", {{"x", x}, {"w", w}, {"r", r}, {"bias", bias}, {"initial_h", h}},
                R"(, activations=["affine"], direction="reverse")");
  expect_tensor(results[0], f32({3, 1, 1, 1}, {8.1875, 9.875, 9.25}));
  expect_tensor(results[1], f32({1, 1, 1}, {8.1875}));
}

TEST(Rnn, RunsBothDirectionsWithTheirOwnWeights) {
  const Data results = run(
      "rnn", {{"x", f32({2, 1, 1}, {1, 2})}, {"w", f32({2, 1, 1}, {1, 10})}, {"r", f32({2, 1, 1}, {1, 1})}},
      R"(, activations=["affine", "relu"], direction="bidirectional")");
  expect_tensor(results[0], f32({2, 2, 1, 1}, {1, 30, 3, 20}));
  expect_tensor(results[1], f32({2, 1, 1}, {3, 30}));
}

TEST(Rnn, EndsEachExampleAtItsLength) {
  const Tensor x = f32({3, 3, 1}, {1, 10, 100, 2, 20, 200, 3, 30, 300}), one = f32({1, 1, 1}, {1});
  const Tensor lengths = tensor(DType::I32, {3}, {3, 2, 0}), h = f32({1, 3, 1}, {0, 0, 7});
  Data results =
      run("rnn", {{"x", x}, {"w", one}, {"r", one}, {"lengths", lengths}, {"initial_h", h}}, kLinear);
  expect_tensor(results[0], f32({3, 1, 3, 1}, {1, 10, 0, 3, 30, 0, 6, 0, 0}));
  expect_tensor(results[1], f32({1, 3, 1}, {6, 30, 7}));
  results = run("rnn", {{"x", x}, {"w", one}, {"r", one}, {"lengths", lengths}, {"initial_h", h}},
                R"(, activations=["affine"], direction="reverse")");
  expect_tensor(results[0], f32({3, 1, 3, 1}, {6, 30, 0, 5, 20, 0, 3, 0, 0}));
}

TEST(Rnn, HasEveryActivation) {
  const std::vector<double> xs = {-3, -0.5, 0, 0.75, 2};
  const auto check = [&](std::string_view attributes, const auto& formula) {
    std::vector<double> expected;
    for (double x : xs)
      expected.push_back(formula(x));
    const Data results =
        run("rnn", {{"x", f32({1, 5, 1}, xs)}, {"w", f32({1, 1, 1}, {1})}, {"r", f32({1, 1, 1}, {0})}},
            fmt::format(", activations=[{}]", attributes));
    expect_near(results[0], f32({1, 1, 5, 1}, expected), 1e-6);
  };
  check(R"("affine"], alpha=[2], beta=[1)", [](double x) { return 2 * x + 1; });
  check(R"("elu"], alpha=[2)", [](double x) { return x < 0 ? 2 * (std::exp(x) - 1) : x; });
  check(R"("hard_sigmoid")", [](double x) { return std::min(std::max(0.2 * x + 0.5, 0.0), 1.0); });
  check(R"("leaky_relu")", [](double x) { return x < 0 ? 0.01 * x : x; });
  check(R"("relu")", [](double x) { return x < 0 ? 0 : x; });
  check(R"("scaled_tanh"], alpha=[3], beta=[0.5)", [](double x) { return 3 * std::tanh(x / 2); });
  check(R"("sigmoid")", [](double x) { return 1 / (1 + std::exp(-x)); });
  check(R"("softplus")", [](double x) { return std::log(1 + std::exp(x)); });
  check(R"("softsign")", [](double x) { return x / (1 + std::abs(x)); });
  check(R"("tanh")", [](double x) { return std::tanh(x); });
  check(R"("thresholded_relu"], alpha=[0.8)", [](double x) { return x > 0.8 ? x : 0; });
  check(R"("affine"], clip=0.5, alpha=[1)", [](double x) { return std::min(std::max(x, -0.5), 0.5); });
}

TEST(Gru, ResetsBeforeOrAfterTheRecurrence) {
  // Update 0.25, reset 0.5 (from the bias alone), candidate x + what comes through r.
  const std::vector<std::pair<std::string_view, Tensor>> operands = {
      {"x", f32({1, 1, 1}, {3})},
      {"w", f32({1, 3, 1}, {0, 0, 1})},
      {"r", f32({1, 3, 1}, {0, 0, 2})},
      {"bias", f32({1, 6}, {0.25, 0.5, 0, 0, 0, 8})},
      {"initial_h", f32({1, 1, 1}, {4})}};
  const std::string linear = R"(, activations=["affine", "affine"])";
  // 0.75 · (3 + 2·(0.5·4) + 8) + 0.25·4
  expect_tensor(run("gru", operands, linear)[1], f32({1, 1, 1}, {12.25}));
  // 0.75 · (3 + 0.5·(2·4 + 8)) + 0.25·4
  expect_tensor(run("gru", operands, linear + ", reset_after=true")[1], f32({1, 1, 1}, {9.25}));
}

TEST(Lstm, HasPeepholesAndCouplesItsGates) {
  // Input 0.5, output 1, forget 0.25 from the bias alone; candidate x.
  std::vector<std::pair<std::string_view, Tensor>> operands = {
      {"x", f32({1, 1, 1}, {3})},
      {"w", f32({1, 4, 1}, {0, 0, 0, 1})},
      {"r", f32({1, 4, 1}, {0, 0, 0, 0})},
      {"bias", f32({1, 8}, {0.5, 1, 0.25, 0, 0, 0, 0, 0})},
      {"initial_c", f32({1, 1, 1}, {4})}};
  const std::string linear = R"(, activations=["affine", "affine", "affine"])";
  Data results = run("lstm", operands, linear);
  expect_tensor(results[0], f32({1, 1, 1, 1}, {2.5}));
  expect_tensor(results[2], f32({1, 1, 1}, {2.5}));  // 0.25·4 + 0.5·3
  results = run("lstm", operands, linear + ", coupled_gates=true");
  expect_tensor(results[2], f32({1, 1, 1}, {3.5}));  // 0.5·4 + 0.5·3
  // The input and forget gates see the old cell state, the output gate the new one.
  operands.emplace_back("peepholes", f32({1, 3}, {0.125, 2, 0.25}));
  results = run("lstm", operands, linear);
  expect_tensor(results[2], f32({1, 1, 1}, {8}));    // (0.25 + 0.25·4)·4 + (0.5 + 0.125·4)·3
  expect_tensor(results[1], f32({1, 1, 1}, {136}));  // (1 + 2·8)·8
}

TEST(Recurrent, InfersSymbolicShapes) {
  const auto graph = parse_graph(
      "graph(%x: f32[t,b,8], %w: f32[2,20,8], %r: f32[2,20,5]) {"
      "  %y, %h, %c = lstm(%x, %w, %r, direction=\"bidirectional\") return %y, %h, %c }");
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[t,2,b,5]");
  EXPECT_EQ(to_string(graph->outputs()[2].type()), "f32[2,b,5]");
}

TEST(Recurrent, OfNothingGivesNothing) {
  const Data results =
      run("rnn", {{"x", f32({0, 2, 1}, {})}, {"w", f32({1, 1, 1}, {1})}, {"r", f32({1, 1, 1}, {1})}}, "");
  expect_tensor(results[0], f32({0, 1, 2, 1}, {}));
  expect_tensor(results[1], f32({1, 2, 1}, {0, 0}));
  expect_tensor(
      run("rnn", {{"x", f32({1, 2, 0}, {})}, {"w", f32({1, 0, 0}, {})}, {"r", f32({1, 0, 0}, {})}}, "")[0],
      f32({1, 1, 2, 0}, {}));
}

TEST(Recurrent, RefusesWhatDoesNotFit) {
  const auto refuse = [](std::string_view w, std::string_view attributes, const std::string& message) {
    expect_error<UserError>(
        [&] {
          register_ops();
          parse(fmt::format(
              "graph(%x: f32[5,2,3], %w: {}, %r: f32[1,12,4]) {{ %y, %h = gru(%x, %w, %r{}) return %y }}", w,
              attributes));
        },
        message);
  };
  refuse("f32[1,16,3]", "",
         "line 1, column 68: gru: w must be [1,12,3]\n"
         "  x  %x: f32[5,2,3]\n  w  %w: f32[1,16,3]\n  r  %r: f32[1,12,4]");
  refuse("f32[1,12,3]", ", activations=[\"tanh\"]",
         "line 1, column 68: gru: 1 activations were given, but it takes 2");
  refuse("f32[1,12,3]", ", direction=\"sideways\"",
         "line 1, column 68: gru: direction is \"sideways\", but must be forward, reverse or bidirectional");
  refuse("f32[1,12,3]", ", activations=[\"tanh\", \"gelu\"]",
         "line 1, column 68: gru: there is no activation gelu\n"
         "  hint: it may be affine, elu, hard_sigmoid, leaky_relu, relu, scaled_tanh, sigmoid, softplus, "
         "softsign, "
         "tanh, thresholded_relu");
  expect_error<UserError>(
      [] {
        run("rnn",
            {{"x", f32({1, 1, 1}, {1})},
             {"w", f32({1, 1, 1}, {1})},
             {"r", f32({1, 1, 1}, {1})},
             {"lengths", i64({1}, {2})}},
            "");
      },
      "node %y: rnn: lengths[0] is 2, but there are 1 steps");
}

}  // namespace
}  // namespace tenon
