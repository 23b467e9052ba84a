// A training step as a graph: what it takes and gives, its formulas, and what is refused.
#include "autodiff/training_step.h"

#include <gtest/gtest.h>

#include "ir/graph_text.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr std::string_view kLinear = R"(
  graph main(%x: f64[4,2]) {
    %w = parameter(name="w", value=f64[2,1] {1, -1})
    %b = parameter(name="b", value=f64[1] {0.5})
    %0 = matmul(%x, %w)
    %y = add(%0, %b)
    return %y
  })";

const Loss kSquaredError = {.kind = Loss::Kind::SquaredError};

Optimizer sgd(double rate) {
  Optimizer optimizer = default_options(Optimizer::Kind::Sgd);
  optimizer.rate.rate = rate;
  return optimizer;
}

std::vector<std::string> state_names(const TrainingStep& step) {
  std::vector<std::string> names;
  for (const StateValue& value : step.state)
    names.push_back(value.name);
  return names;
}

void expect_refused(std::string_view text, const Loss& loss, const Optimizer& optimizer,
                    const TrainingOptions& options, const std::string& message) {
  const auto model = parse_graph(text);
  expect_error<UserError>([&] { (void)training_step(*model, loss, optimizer, options); }, message);
}

TEST(TrainingStep, TakesAndGivesTheState) {
  Optimizer optimizer = sgd(0.1);
  optimizer.momentum = 0.9;
  const TrainingStep step = training_step(*parse_graph(kLinear), kSquaredError, optimizer);
  EXPECT_EQ(lint(*step.graph), std::vector<std::string>());
  EXPECT_EQ(state_names(step),
            (std::vector<std::string>{"w", "b", "w.momentum_buffer", "b.momentum_buffer", "step"}));
  EXPECT_EQ(step.weights, 2U);
  EXPECT_EQ(step.graph->input(static_cast<int64_t>(step.target)).name(), "target");
  EXPECT_EQ(step.graph->output_names(),
            (std::vector<std::string>{"loss", "rate", "next_w", "next_b", "next_w.momentum_buffer",
                                      "next_b.momentum_buffer", "next_step"}));
  for (const StateValue& value : step.state) {
    EXPECT_EQ(step.graph->input(static_cast<int64_t>(value.input)).name(), value.name);
    EXPECT_EQ(step.graph->output_names()[value.output], "next_" + value.name);
  }
}

// y = x w + b, loss = mean (y - t)², whose gradients are 2/4 xᵀ (y - t) and 2/4 Σ (y - t).
TEST(TrainingStep, FollowsTheGradient) {
  const TrainingStep step = training_step(*parse_graph(kLinear), kSquaredError, sgd(0.5));
  const Tensor x = tensor(DType::F64, {4, 2}, {1, 0, 0, 1, 1, 1, 2, 0});
  const Tensor t = tensor(DType::F64, {4, 1}, {0.5, -1.5, 0.5, 2.5});
  Data inputs = {x, t};
  for (const StateValue& value : step.state)
    inputs.emplace_back(value.initial.tensor());
  const Data outputs = evaluate(*step.graph, inputs);  // y - t = 1, 1, 0, 0
  expect_tensor(outputs[kLossOutput], tensor(DType::F64, {}, {0.5}));
  expect_tensor(outputs[kRateOutput], tensor(DType::F64, {}, {0.5}));
  expect_tensor(outputs[2], tensor(DType::F64, {2, 1}, {0.75, -1.25}));
  expect_tensor(outputs[3], tensor(DType::F64, {1}, {0}));
  expect_tensor(outputs[4], i64({}, {1}));
}

TEST(TrainingStep, LionGoesBySigns) {
  Optimizer optimizer = default_options(Optimizer::Kind::Lion);
  optimizer.rate.rate = 0.5;
  optimizer.weight_decay = 0.1;
  const TrainingStep step = training_step(*parse_graph(kLinear), kSquaredError, optimizer);
  Data inputs = {tensor(DType::F64, {4, 2}, {1, 0, 0, 1, 1, 1, 2, 0}),
                 tensor(DType::F64, {4, 1}, {0.5, -1.5, 0.5, 2.5})};
  for (const StateValue& value : step.state)
    inputs.emplace_back(value.initial.tensor());
  const Data outputs = evaluate(*step.graph, inputs);
  expect_near(outputs[2], tensor(DType::F64, {2, 1}, {0.95 - 0.5, -0.95 - 0.5}), 1e-15);
  expect_near(outputs[3], tensor(DType::F64, {1}, {0.475 - 0.5}), 1e-15);
  expect_near(outputs[4], tensor(DType::F64, {2, 1}, {0.005, 0.005}), 1e-15);
}

TEST(TrainingStep, ClipsAllGradientsTogether) {
  TrainingOptions options = {.clip_norm = 0.5};
  const TrainingStep step = training_step(*parse_graph(kLinear), kSquaredError, sgd(1), options);
  Data inputs = {tensor(DType::F64, {4, 2}, {1, 0, 0, 0, 0, 0, 0, 0}),
                 tensor(DType::F64, {4, 1}, {-0.5, 0.5, 0.5, 0.5})};
  for (const StateValue& value : step.state)
    inputs.emplace_back(value.initial.tensor());
  const Data outputs = evaluate(*step.graph, inputs);  // gradients 1, 0 and 1: a norm of √2
  const double part = 0.5 / std::sqrt(2);
  expect_near(outputs[2], tensor(DType::F64, {2, 1}, {1 - part, -1}), 1e-6);
  expect_near(outputs[3], tensor(DType::F64, {1}, {0.5 - part}), 1e-6);
}

// What a step computes of some examples.
Data run(const TrainingStep& step, Data inputs) {
  for (const StateValue& value : step.state)
    inputs.emplace_back(value.initial.tensor());
  return evaluate(*step.graph, inputs);
}

// A model, its batches and the same examples at once.
void expect_same_in_parts(const std::string& text, const Loss& loss, int64_t batch, const Data& examples) {
  const auto model = [&](int64_t size) { return parse_graph(fmt::format(fmt::runtime(text), size)); };
  const Optimizer adam = default_options(Optimizer::Kind::Adam);
  const TrainingStep whole = training_step(*model(2 * batch), loss, adam, {.clip_norm = 0.1}),
                     parts = training_step(*model(batch), loss, adam, {.clip_norm = 0.1, .parts = 2});
  EXPECT_EQ(lint(*parts.graph), std::vector<std::string>());
  EXPECT_EQ(state_names(parts), state_names(whole));
  EXPECT_EQ(parts.graph->input(0).type(), whole.graph->input(0).type());
  const Data wanted = run(whole, examples), found = run(parts, examples);
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    expect_near(found[i], wanted[i].tensor(), 1e-12);
}

TEST(TrainingStep, SumsGradientsOverParts) {
  const std::string linear = R"(
    graph main(%x: f64[{},2]) {{
      %w = parameter(name="w", value=f64[2,3] {{1, -1, 0.5, 2, 0, 1}})
      %y = matmul(%x, %w)
      return %y
    }})";
  const Tensor x = tensor(DType::F64, {4, 2}, {1, 0, 0, 1, 1, 1, 2, 0});
  expect_same_in_parts(linear, kSquaredError, 2,
                       {x, tensor(DType::F64, {4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3})});
  expect_same_in_parts(linear, {.smoothing = 0.1}, 2, {x, i64({4}, {2, 1, 0, 0})});
  // Of labels that do not count, one part may have more.
  expect_same_in_parts(linear, {.ignored = -1}, 2, {x, i64({4}, {2, -1, 0, 0})});
  expect_same_in_parts(linear, {.smoothing = 0.2, .ignored = -1}, 2, {x, i64({4}, {-1, -1, 0, 1})});
}

// More labels than f16 can count. Each has the loss ln (1 + 2 e⁻⁵).
TEST(TrainingStep, CountsLabelsOfAllParts) {
  const auto model = parse_graph(R"(
    graph main(%x: f16[36000,1]) {
      %w = parameter(name="w", value=f16[1,3] {5, 0, 0})
      %y = matmul(%x, %w)
      return %y
    })");
  const TrainingStep step = training_step(*model, {.ignored = 1}, sgd(1), {.parts = 2});
  std::vector<double> ones(72000, 1), labels(72000, 0);
  std::ranges::fill(std::span(labels).first(10), 1);
  const Data outputs =
      run(step, {narrow<double>(DType::F16, {72000, 1}, ones), narrow<double>(DType::I64, {72000}, labels)});
  const double tail = std::exp(-5);
  expect_near(outputs[kLossOutput], tensor(DType::F16, {}, {std::log(1 + 2 * tail)}), 1e-4);
  const double share = tail / (1 + 2 * tail);
  expect_near(outputs[2], tensor(DType::F16, {1, 3}, {5 + 2 * share, -share, -share}), 1e-4);
}

TEST(TrainingStep, SplitsBatchesOfAnySize) {
  const TrainingStep step = training_step(*parse_graph(R"(
    graph main(%x: f32[n,2]) {
      %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
      %y = matmul(%x, %w)
      return %y
    })"),
                                          {.ignored = 0}, sgd(1), {.parts = 3});
  EXPECT_EQ(fmt::format("{}", step.graph->input(0).type()), "f32[3*n,2]");
  expect_refused(
      "graph main(%x: f32[n,m]) { %w = parameter(name=\"w\", value=f32[] {1}) %y = mul(%x, %w) return %y }",
      kSquaredError, sgd(1), {.parts = 3},
      "batches are split only where one size of \"x\" is open, but it is f32[3*n,m]\n"
      "  hint: --dim fixes them");
  expect_refused(
      "graph main(%x: f32[n], %k: f32[]) { %w = parameter(name=\"w\", value=f32[] {1}) %0 = mul(%x, %w) "
      "%y = mul(%0, %k) return %y }",
      kSquaredError, sgd(1), {.parts = 3}, "a batch is split along its first dimension, but \"k\" is f32[]");
}

void expect_same_graph(const Graph& graph, std::string_view text) {
  EXPECT_EQ(difference(*parse_graph(text), graph), "");
}

// Batch normalisation in training, as a .pt2 has it.
constexpr std::string_view kTrainingNormalised = R"(
  graph main(%x: f64[{},2]) {{
    %w = parameter(name="w", value=f64[2] {{1, 2}})
    %b = parameter(name="b", value=f64[2] {{0, 0}})
    %mean = reduce_mean(%x, axes=[0])
    %0 = sub(%x, %mean)
    %1 = mul(%0, %0)
    %variance = reduce_mean(%1, axes=[0])
    %y = batch_norm(%x, %w, %b, %mean, %variance)
    %running_mean = parameter(name="running_mean", value=f64[2] {{0, 0}})
    %running_var = parameter(name="running_var", value=f64[2] {{1, 1}})
    %2 = add(%running_mean, %mean)
    %3 = add(%running_var, %variance)
    %count = parameter(name="count", value=i64[] {{4}})
    %one = constant(value=i64[] {{1}})
    %4 = add(%count, %one)
    return %y, %2 as "running_mean", %3 as "running_var", %4 as "count"
  }})";

std::unique_ptr<Graph> normalised(int64_t batch) {
  return parse_graph(fmt::format(fmt::runtime(kTrainingNormalised), batch));
}

TEST(TrainingStep, GathersStatistics) {
  const TrainingStep step = training_step(*normalised(2), kSquaredError, sgd(1));
  EXPECT_EQ(lint(*step.graph), std::vector<std::string>());
  EXPECT_EQ(state_names(step),
            (std::vector<std::string>{"w", "b", "running_mean", "running_var", "count", "step"}));
  EXPECT_EQ(step.weights, 2U);
  EXPECT_EQ(step.statistics, 3U);
  EXPECT_TRUE(step.unreached.empty());
  const Data outputs = run(step, {tensor(DType::F64, {2, 2}, {1, 2, 3, 6}), filled(DType::F64, {2, 2}, 0)});
  expect_tensor(outputs[step.state[2].output], tensor(DType::F64, {2}, {2, 4}));
  expect_tensor(outputs[step.state[3].output], tensor(DType::F64, {2}, {2, 5}));
  expect_tensor(outputs[step.state[4].output], i64({}, {5}));
}

TEST(TrainingStep, GathersStatisticsOfPartsOneAfterTheOther) {
  const TrainingStep step = training_step(*normalised(2), kSquaredError, sgd(1), {.parts = 2});
  const Data outputs =
      run(step, {tensor(DType::F64, {4, 2}, {1, 2, 3, 6, 0, 0, 4, 2}), filled(DType::F64, {4, 2}, 0)});
  expect_tensor(outputs[step.state[2].output], tensor(DType::F64, {2}, {2 + 2, 4 + 1}));
  expect_tensor(outputs[step.state[3].output], tensor(DType::F64, {2}, {2 + 4, 5 + 1}));
  expect_tensor(outputs[step.state[4].output], i64({}, {6}));
}

TEST(TrainingStep, LeavesFrozenStatisticsAlone) {
  const TrainingStep step = training_step(*normalised(2), kSquaredError, sgd(1), {.frozen = {"running_*"}});
  EXPECT_EQ(state_names(step), (std::vector<std::string>{"w", "b", "count", "step"}));
}

TEST(TrainingStep, HasTheTrainedModelNormaliseByStatistics) {
  const auto trained = with_weights(*normalised(2), {{"running_mean", tensor(DType::F64, {2}, {3, 4})},
                                                     {"b", tensor(DType::F64, {2}, {5, 6})}});
  expect_same_graph(*trained, R"(
    graph main(%x: f64[2,2]) {
      %w = parameter(name="w", value=f64[2] {1, 2})
      %b = parameter(name="b", value=f64[2] {5, 6})
      %running_mean = parameter(name="running_mean", value=f64[2] {3, 4})
      %running_var = parameter(name="running_var", value=f64[2] {1, 1})
      %y = batch_norm(%x, %w, %b, %running_mean, %running_var)
      return %y
    })");
}

// Of two, each by its own, though what goes into the second comes from the first.
TEST(TrainingStep, TellsTheStatisticsOfNodesApart) {
  const auto trained = with_weights(*parse_graph(R"(
    graph main(%x: f64[2,1]) {
      %w = parameter(name="w", value=f64[1] {1})
      %m = reduce_mean(%x, axes=[0])
      %v = constant(value=f64[1] {1})
      %0 = batch_norm(%x, %w, %w, %m, %v)
      %n = reduce_mean(%0, axes=[0])
      %y = batch_norm(%0, %w, %w, %n, %v)
      %first = parameter(name="first", value=f64[1] {2})
      %second = parameter(name="second", value=f64[1] {3})
      %1 = add(%first, %m)
      %2 = add(%second, %n)
      return %y, %1 as "first", %2 as "second"
    })"),
                                    {});
  expect_same_graph(*trained, R"(
    graph main(%x: f64[2,1]) {
      %w = parameter(name="w", value=f64[1] {1})
      %v = constant(value=f64[1] {1})
      %first = parameter(name="first", value=f64[1] {2})
      %0 = batch_norm(%x, %w, %w, %first, %v)
      %second = parameter(name="second", value=f64[1] {3})
      %y = batch_norm(%0, %w, %w, %second, %v)
      return %y
    })");
}

TEST(TrainingStep, LeavesNormalisationsAloneThatAStatisticIsNotOf) {
  const auto trained = with_weights(*parse_graph(R"(
    graph main(%x: f64[2,1]) {
      %w = parameter(name="w", value=f64[1] {1})
      %m = reduce_mean(%x, axes=[0])
      %y = batch_norm(%x, %w, %w, %m, %w)
      %n = reduce_mean(%y, axes=[0])
      %average = parameter(name="average", value=f64[1] {2})
      %0 = add(%average, %n)
      return %y, %0 as "average"
    })"),
                                    {});
  expect_same_graph(*trained, R"(
    graph main(%x: f64[2,1]) {
      %w = parameter(name="w", value=f64[1] {1})
      %m = reduce_mean(%x, axes=[0])
      %y = batch_norm(%x, %w, %w, %m, %w)
      return %y
    })");
}

// The rates of some steps.
std::vector<double> rates(const LearningRate& rate, const std::vector<int64_t>& steps) {
  Optimizer optimizer = sgd(rate.rate);
  optimizer.rate = rate;
  const TrainingStep step = training_step(*parse_graph(kLinear), kSquaredError, optimizer);
  std::vector<double> found;
  for (const int64_t number : steps) {
    Data inputs = {filled(DType::F64, {4, 2}, 1), filled(DType::F64, {4, 1}, 1)};
    for (const StateValue& value : step.state)
      inputs.emplace_back(value.initial.tensor());
    inputs.back() = Tensor::scalar<int64_t>(number);
    found.push_back(as_double(evaluate(*step.graph, inputs)[kRateOutput].tensor()));
  }
  return found;
}

void expect_rates(const LearningRate& rate, const std::vector<int64_t>& steps,
                  const std::vector<double>& wanted) {
  const std::vector<double> found = rates(rate, steps);
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], 1e-12) << "step " << steps[i];
}

TEST(TrainingStep, FollowsASchedule) {
  using Schedule = LearningRate::Schedule;
  expect_rates({.rate = 2}, {0, 1000}, {2, 2});
  expect_rates({.rate = 2, .warmup = 4}, {0, 1, 3, 4, 100}, {0.5, 1, 2, 2, 2});
  expect_rates({.rate = 2, .schedule = Schedule::Cosine, .warmup = 2, .steps = 10, .lowest = 1},
               {0, 1, 2, 6, 10, 20}, {1, 2, 2, 1.5, 1, 1});
  expect_rates({.rate = 2, .schedule = Schedule::Step, .every = 3, .factor = 0.5}, {0, 2, 3, 6},
               {2, 2, 1, 0.5});
}

TEST(TrainingStep, LeavesFrozenWeightsAlone) {
  const TrainingStep step = training_step(*parse_graph(kLinear), kSquaredError, sgd(1), {.frozen = {"b*"}});
  EXPECT_EQ(state_names(step), (std::vector<std::string>{"w", "step"}));
  EXPECT_EQ(
      std::ranges::count_if(step.graph->nodes(), [](const Node* node) { return node->is("parameter"); }), 1);
}

TEST(TrainingStep, LeavesWeightsAloneThatTheLossDoesNotDependOn) {
  const TrainingStep step = training_step(*parse_graph(R"(
    graph main(%x: f32[4,2]) {
      %w = parameter(name="w", value=f32[] {1})
      %v = parameter(name="v", value=f32[2] {1, 2})
      %0 = greater(%x, %v)
      %1 = cast(%0, to=f32)
      %y = mul(%1, %w)
      return %y
    })"),
                                          kSquaredError, sgd(1));
  EXPECT_EQ(state_names(step), (std::vector<std::string>{"w", "step"}));
  EXPECT_EQ(step.unreached, std::vector<std::string>{"v"});
  EXPECT_EQ(lint(*step.graph), std::vector<std::string>());
}

TEST(TrainingStep, GivesNoInputANameThatIsTaken) {
  const TrainingStep step = training_step(*parse_graph(R"(
    graph main(%target: f32[4]) {
      %w = parameter(name="step", value=f32[] {1})
      %y = mul(%target, %w)
      return %y
    })"),
                                          kSquaredError, sgd(1));
  EXPECT_EQ(step.graph->input(static_cast<int64_t>(step.target)).name(), "target_");
  EXPECT_EQ(state_names(step), (std::vector<std::string>{"step", "step_"}));
  EXPECT_EQ(step.state.front().weight, "step");
}

constexpr std::string_view kClassifier = R"(
  graph main(%x: f64[3,4]) {{
    %w = parameter(name="w", value=f64[4] {{1, 2, 3, 4}})
    %0 = mul(%x, %w)
    %y = {}(%0, axis={})
    return %y
  }})";

double loss_of_classifier(std::string_view op, int64_t axis, const Loss& loss) {
  const TrainingStep step =
      training_step(*parse_graph(fmt::format(fmt::runtime(kClassifier), op, axis)), loss, sgd(1));
  Data inputs = {tensor(DType::F64, {3, 4}, {1, 0, 2, 1, 0, 0, 1, 0, 0, 3, 0, 1}), i64({3}, {2, -100, 1})};
  if (!loss.ignored)
    inputs[1] = i64({3}, {2, 0, 1});
  for (const StateValue& value : step.state)
    inputs.emplace_back(value.initial.tensor());
  return as_double(evaluate(*step.graph, inputs)[kLossOutput].tensor());
}

// The values are those of PyTorch's cross_entropy of the logits.
TEST(TrainingStep, TakesCrossEntropyOfLogits) {
  EXPECT_NEAR(loss_of_classifier("softmax", 1, {}), 1.1351682179, 1e-9);
  EXPECT_NEAR(loss_of_classifier("log_softmax", -1, {}), 1.1351682179, 1e-9);
  EXPECT_NEAR(loss_of_classifier("softmax", 1, {.smoothing = 0.1, .ignored = -100}), 0.4706491697, 1e-9);
  EXPECT_NEAR(loss_of_classifier("softmax", 0, {}), 1.0441193547, 1e-9);  // over the batch: no classes
}

TEST(TrainingStep, RefusesWhatCannotBeTrained) {
  expect_refused("graph main(%x: f32[4]) {\n  %y = relu(%x)\n  return %y\n}", kSquaredError, sgd(1), {},
                 "the model has no weights to train");
  expect_refused(kLinear, {}, sgd(1), {},
                 "cross_entropy is of scores of two classes at least, but the model's first output \"y\" is "
                 "f64[4,1]");
  expect_refused("graph main(%x: f32[4]) {\n  %y = relu(%x)\n  return %y\n}", {}, sgd(1), {},
                 "cross_entropy is of scores of [batch, classes, …], but the model's first output \"y\" is "
                 "f32[4]");
  expect_refused("graph main(%x: f32[4]) {\n  %y = shape(%x)\n  return %y\n}", kSquaredError, sgd(1), {},
                 "mse is of a float tensor of known rank, but the model's first output \"y\" is i64[1]");
  expect_refused(kLinear, kSquaredError, sgd(1), {.frozen = {"wb"}},
                 "no weight is called wb, so it cannot be frozen");
  expect_refused(kLinear, kSquaredError, sgd(1), {.frozen = {"*"}}, "the model has no weights to train");
  expect_refused(R"(
    graph main(%x: f32[4,2]) {
      %v = parameter(name="v", value=f32[2] {1, 2})
      %y = greater(%x, %v)
      %z = cast(%y, to=f32)
      return %z
    })",
                 kSquaredError, sgd(1), {}, "the loss does not depend on any weight that may be trained");
  Optimizer optimizer = sgd(1);
  optimizer.nesterov = true;
  expect_refused(kLinear, kSquaredError, optimizer, {},
                 "Nesterov's method takes a momentum, and no dampening");
}

constexpr std::string_view kNormalised = R"(
  graph main(%x: f32[4,2]) {
    %scale = parameter(name="bn.weight", value=f32[2] {1, 1})
    %bias = parameter(name="bn.bias", value=f32[2] {0, 0})
    %mean = parameter(name="bn.running_mean", value=f32[2] {0, 0})
    %variance = parameter(name="bn.running_var", value=f32[2] {1, 1})
    %y = batch_norm(%x, %scale, %bias, %mean, %variance)
    return %y
  })";

TEST(TrainingStep, DoesNotTrainStatistics) {
  expect_refused(
      kNormalised, kSquaredError, sgd(1), {},
      "node %y: batch normalisation by stored statistics: \"bn.running_mean\" is one of them, and no "
      "weight\n  hint: freeze all statistics, those of this node with --freeze "
      "'bn.running_mean,bn.running_var'");
  const TrainingStep step =
      training_step(*parse_graph(kNormalised), kSquaredError, sgd(1), {.frozen = {"*.running_*"}});
  EXPECT_EQ(state_names(step), (std::vector<std::string>{"bn.weight", "bn.bias", "step"}));
}

TEST(TrainingStep, DoesNotTrainScalesOfQuantisations) {
  constexpr std::string_view kQuantised = R"(
  graph main(%x: f32[4,2]) {
    %w = parameter(name="w", value=f32[2,1] {1, 2})
    %scale = parameter(name="w.scale", value=f32[] {0.5})
    %zero = constant(value=i8[] {0})
    %q = quantize(%w, %scale, %zero, to=i8)
    %d = dequantize(%q, %scale, %zero, to=f32)
    %y = matmul(%x, %d)
    return %y
  })";
  expect_refused(kQuantised, kSquaredError, sgd(1), {},
                 "node %q: \"w.scale\" is the scale of a quantisation, and no weight\n"
                 "  hint: train the model before it is quantised, or freeze its scales, such as --freeze "
                 "'w.scale'");
}

TEST(TrainingStep, PutsTrainedWeightsIntoTheModel) {
  const auto model = parse_graph(kLinear);
  const auto trained = with_weights(*model, {{"b", tensor(DType::F64, {1}, {2})}});
  const Tensor x = tensor(DType::F64, {4, 2}, {1, 0, 0, 1, 1, 1, 2, 0});
  expect_tensor(evaluate(*trained, {x}).front(), tensor(DType::F64, {4, 1}, {3, 1, 2, 4}));
  expect_tensor(evaluate(*model, {x}).front(), tensor(DType::F64, {4, 1}, {1.5, -0.5, 0.5, 2.5}));
}

}  // namespace
}  // namespace tenon
