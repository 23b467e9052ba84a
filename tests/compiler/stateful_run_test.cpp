// Programs that keep a state: where its next values lie, and that they are those of the evaluator.
#include "runtime/stateful_run.h"

#include <gtest/gtest.h>

#include "autodiff/training_step.h"
#include "compiler/expect_compiled.h"
#include "ir/evaluate.h"
#include "passes/pipeline.h"

namespace tenon {

using runtime::StatefulRun;

namespace {

std::shared_ptr<const runtime::Executor> compiled(const Graph& graph) {
  compiler::CompileContext options = here();
  options.cache = std::nullopt;
  return compile(graph, options);
}

TEST(StatefulRun, ComputesTheNextStateInPlaceOrInAnotherBuffer) {
  register_ops();
  // A row and a column of %q are read for each element of %next_q.
  const auto graph = parse(R"(graph g(%x: f32[64], %m: f32[64], %q: f32[64,64]) {
    %next_m = add(%m, %x)
    %0 = matmul(%q, %q)
    %next_q = add(%0, %x)
    %y = mul(%next_m, %x)
    return %y, %next_m, %next_q
  })");
  const Tensor x = numbers(DType::F32, {64}, 1);
  Tensor m = numbers(DType::F32, {64}, 2), q = numbers(DType::F32, {64, 64}, 3);
  StatefulRun run(compiled(*graph), {{1, 1}, {2, 2}}, {m, q});
  EXPECT_EQ(run.in_place(), 1U);
  for (int step = 0; step < 2; ++step) {
    const Data wanted = evaluate(*graph, {x, run.state(0), run.state(1)});
    const Data outputs = run.run({x}, {.threads = 2});
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_TRUE(identical(outputs[0].tensor(), wanted[0].tensor()));
    EXPECT_TRUE(identical(run.state(0), wanted[1].tensor()));
    const auto got = widen<double>(run.state(1)), want = widen<double>(wanted[2].tensor());
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got[i], want[i], 1e-4 * std::max(1.0, std::fabs(want[i])));
  }
  EXPECT_TRUE(identical(m, numbers(DType::F32, {64}, 2)));  // what it began with is the caller's
}

TEST(StatefulRun, RefusesAStateOfAnotherType) {
  register_ops();
  const auto graph = parse("graph g(%m: f32[2]) {\n  %y = cast(%m, to=f64)\n  return %y\n}");
  const auto program = compiled(*graph);
  try {
    const StatefulRun run(program, {{0, 0}}, {Tensor(DType::F32, {2})});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()),
              "the state \"m\" is f32[2], its next value f64[2], and what it begins with f32[2]");
  }
}

// Two layers; the weights of the second are read by the gradient of the first.
constexpr std::string_view kModel = R"(graph mlp(%x: f64[16,8]) {
  %v = parameter(name="v", value=f64[8,32] splat 0.1)
  %c = parameter(name="c", value=f64[32] splat 0.05)
  %w = parameter(name="w", value=f64[32,4] splat -0.1)
  %0 = matmul(%x, %v)
  %1 = add(%0, %c)
  %2 = tanh(%1)
  %3 = matmul(%2, %w)
  return %3
})";

class Steps : public testing::TestWithParam<Optimizer::Kind> {};

TEST_P(Steps, AreThoseOfTheEvaluator) {
  register_ops();
  const auto model = parse(kModel);
  Optimizer optimizer = default_options(GetParam());
  optimizer.rate.rate = 0.01;
  optimizer.momentum = GetParam() == Optimizer::Kind::Sgd ? 0.9 : 0;
  const TrainingStep step = training_step(*model, {}, optimizer, {.clip_norm = 1});
  std::vector<StatefulRun::Pair> pairs;
  std::vector<Tensor> state;
  for (const StateValue& value : step.state) {
    pairs.push_back({value.input, value.output});
    state.push_back(value.initial.tensor());
    if (state.size() <= step.weights)  // equal ones would have no gradient but for rounding
      state.back() = numbers(DType::F64, value.initial.extents(), state.size());
  }
  const auto optimised = step.graph->clone();
  Journal journal;
  optimize(*optimised, journal, {});
  StatefulRun run(compiled(*optimised), pairs, state);
  EXPECT_GT(run.in_place(), 0U);
  const Tensor labels = Tensor::of<int64_t>({0, 1, 2, 3, 0, 1, 2, 3, 3, 2, 1, 0, 0, 0, 1, 1});
  for (uint64_t number = 0; number < 5; ++number) {
    const Tensor x = numbers(DType::F64, {16, 8}, number);
    Data inputs = {x, labels};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const Data wanted = evaluate(*step.graph, inputs);
    const Data outputs = run.run({x, labels}, {.threads = 2});
    EXPECT_NEAR(as_double(outputs[kLossOutput].tensor()), as_double(wanted[kLossOutput].tensor()), 1e-12);
    for (size_t i = 0; i < pairs.size(); ++i) {
      state[i] = wanted[pairs[i].output].tensor();
      const auto got = widen<double>(run.state(i)), want = widen<double>(state[i]);
      for (size_t k = 0; k < want.size(); ++k)
        ASSERT_NEAR(got[k], want[k], 1e-12) << step.state[i].name << " after step " << number;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Steps,
                         testing::Values(Optimizer::Kind::Sgd, Optimizer::Kind::Adam, Optimizer::Kind::AdamW,
                                         Optimizer::Kind::Adagrad));

}  // namespace
}  // namespace tenon
