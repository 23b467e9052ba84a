// tenon train and tenon train-step: what they say and write, that training goes on after it was killed as if
// it had not been, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "cli/shell.h"
#include "ir/graph_text.h"
#include "tensor/npy.h"
#include "tensor/wide.h"

namespace tenon::cli {
namespace {

constexpr int64_t kExamples = 70;

// A layer for two features and three classes.
constexpr const char* kModel = R"(graph main(%x: f32[batch,2]) {
  %w = parameter(name="w", value=f32[2,3] {0.1, -0.2, 0.3, 0.2, 0.1, -0.1})
  %b = parameter(name="b", value=f32[3] {0, 0, 0})
  %0 = matmul(%x, %w)
  %y = add(%0, %b)
  return %y
})";

class Train : public CommandLine {
 protected:
  void SetUp() override {
    folder_.write("model.tenon", kModel);
    std::vector<double> x;
    for (int64_t i = 0; i < kExamples; ++i) {
      labels_.push_back(i % 3);
      x.push_back(std::cos(2.1 * static_cast<double>(i % 3)) + 0.1 * std::sin(static_cast<double>(i)));
      x.push_back(std::sin(2.1 * static_cast<double>(i % 3)) + 0.1 * std::cos(static_cast<double>(i)));
    }
    x_ = narrow<double>(DType::F32, {kExamples, 2}, x);
    write_data(Tensor::of<int64_t>(labels_));
  }

  void write_data(const Tensor& target) const {
    write_npz(folder_ / "data.npz", {{"x", x_}, {"target", target}});
  }

  Tensor read(const std::string& file, const std::string& name) const {
    for (const auto& [each, tensor] : read_npz(folder_ / file))
      if (each == name)
        return tensor;
    ADD_FAILURE() << file << " has no " << name;
    return {};
  }

  std::vector<int64_t> labels_;
  Tensor x_;
};

constexpr const char* kTrain =
    "tenon train model.tenon --data data.npz --loss cross_entropy --optimizer adam --learning-rate 0.05 "
    "--batch 16 --seed 3 ";

TEST_F(Train, SaysHowTheLossFalls) {
  const Outcome outcome = shell(std::string(kTrain) + "--epochs 30 --log-every 60 -o trained.onnx");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  const auto at = [&](const std::string& text) { return outcome.out.find(text) != std::string::npos; };
  EXPECT_TRUE(at("2 weights, 9 numbers; the state takes 116 B\n")) << outcome.out;
  EXPECT_TRUE(at("updated in place: ")) << outcome.out;
  EXPECT_TRUE(at("6 examples of each epoch dropped, which do not fill a batch\n")) << outcome.out;
  EXPECT_TRUE(at("epoch 15, step 60: loss ")) << outcome.out;
  EXPECT_TRUE(at("epoch 30, step 120: loss 0.0")) << outcome.out;
  EXPECT_TRUE(at("wrote trained.onnx: ")) << outcome.out;
  write_npz(folder_ / "in.npz", {{"x", x_}});
  ASSERT_EQ(shell("tenon run trained.onnx --inputs in.npz --outputs out.npz").status, 0);
  const std::vector<double> y = widen<double>(read("out.npz", "y"));
  for (size_t i = 0; i < labels_.size(); ++i)
    EXPECT_EQ(std::max_element(y.begin() + static_cast<std::ptrdiff_t>(3 * i),
                               y.begin() + static_cast<std::ptrdiff_t>(3 * i + 3)) -
                  (y.begin() + static_cast<std::ptrdiff_t>(3 * i)),
              labels_[i]);
}

TEST_F(Train, GoesOnAfterItWasKilledAsIfItHadNotBeen) {
  const std::string train = std::string(kTrain) + "--epochs 200 --checkpoint-every 7 --log-every 100 ";
  const Outcome whole = shell(train + "--checkpoint whole.npz -o whole.onnx");
  ASSERT_EQ(whole.status, 0) << whole.error;
  // Each time it has a little longer, so that it comes to an end on any machine.
  const Outcome killed = shell(
      "kills=0; wait=2\n"
      "until timeout -s KILL $((wait / 100)).$(printf %02d $((wait % 100))) " +
      train +
      "--checkpoint state.npz -o trained.onnx --resume >>log\n"
      "do [ $? = 137 ] || exit 1; kills=$((kills + 1)); wait=$((wait * 5 / 4 + 1)); done 2>/dev/null\n"
      "echo $kills");
  ASSERT_EQ(killed.status, 0) << killed.error;
  EXPECT_GT(std::stoi(killed.out), 0);
  EXPECT_EQ(read_file(folder_ / "state.npz"), read_file(folder_ / "whole.npz"));
  EXPECT_EQ(read_file(folder_ / "trained.onnx"), read_file(folder_ / "whole.onnx"));
  const std::string last = whole.out.substr(whole.out.rfind("epoch 200, "));
  EXPECT_NE(read_file(folder_ / "log").find(last.substr(0, last.find('\n'))), std::string::npos);
}

TEST_F(Train, GoesOnWithMoreEpochs) {
  ASSERT_EQ(shell(std::string(kTrain) + "--epochs 5 --checkpoint whole.npz").status, 0);
  ASSERT_EQ(shell(std::string(kTrain) + "--epochs 2 --checkpoint state.npz").status, 0);
  const Outcome outcome = shell(std::string(kTrain) + "--epochs 5 --checkpoint state.npz --resume");
  EXPECT_NE(outcome.out.find("resuming from state.npz after 8 steps\n"), std::string::npos) << outcome.out;
  EXPECT_EQ(read_file(folder_ / "state.npz"), read_file(folder_ / "whole.npz"));
  const std::string other = "tenon train model.tenon --data data.npz --loss cross_entropy --optimizer adam ";
  EXPECT_EQ(shell(other + "--epochs 6 --seed 4 --checkpoint state.npz --resume").error,
            "note: state.npz was made with other examples, or another --batch or --seed\n");
}

// The loss and the accuracy, in percent, that weights of the model have on some examples.
std::pair<double, double> measure(const Tensor& x, const std::vector<int64_t>& labels, const Tensor& w,
                                  const Tensor& b) {
  const std::vector<double> xs = widen<double>(x), ws = widen<double>(w), bs = widen<double>(b);
  double loss = 0, right = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    std::vector<double> y(3);
    for (size_t k = 0; k < 3; ++k)
      y[k] = xs[2 * i] * ws[k] + xs[2 * i + 1] * ws[3 + k] + bs[k];
    const auto label = static_cast<size_t>(labels[i]);
    loss += std::log(std::exp(y[0]) + std::exp(y[1]) + std::exp(y[2])) - y[label];
    right += *std::ranges::max_element(y) == y[label] ? 1 : 0;
  }
  const auto count = static_cast<double>(labels.size());
  return {loss / count, 100 * right / count};
}

double number_after(const std::string& text, const std::string& words) {
  const size_t at = text.rfind(words);
  return at == std::string::npos ? std::nan("") : std::stod(text.substr(at + words.size()));
}

TEST_F(Train, ValidatesOnOtherExamples) {
  const std::vector<int64_t> labels = {0, 1, 2, 0, 1, 2, 2, 2, 1, 1, 0, 0, 0, 0, 0, 1, 2, 2, 1, 1, 0};
  std::vector<double> numbers(2 * labels.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = std::sin(static_cast<double>(3 * i));
  const Tensor x = narrow<double>(DType::F32, {21, 2}, numbers);
  write_npz(folder_ / "others.npz", {{"x", x}, {"target", Tensor::of<int64_t>(labels)}});
  const std::string train = std::string(kTrain) + "--validate others.npz --checkpoint state.npz ";
  const Outcome outcome = shell(train + "--epochs 2");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NE(outcome.out.find("epoch 1, step 4: validation loss "), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("epoch 2, step 8: validation loss "), std::string::npos) << outcome.out;
  const auto [loss, accuracy] = measure(x, labels, read("state.npz", "w"), read("state.npz", "b"));
  EXPECT_NEAR(number_after(outcome.out, "validation loss "), loss, 1e-5);
  EXPECT_NEAR(number_after(outcome.out, "accuracy "), accuracy, 0.1);
  // Labels that do not count are in neither.
  std::vector<int64_t> some = labels;
  std::ranges::fill(std::span(some).first(18), -100);
  write_npz(folder_ / "others.npz", {{"x", x}, {"target", Tensor::of<int64_t>(some)}});
  const Outcome fewer = shell(train + "--steps 3 --ignore-label -100");
  EXPECT_NE(fewer.out.find("epoch 1, step 3: validation loss "), std::string::npos) << fewer.out;
  const auto [own, right] =
      measure(narrow<double>(DType::F32, {3, 2}, std::span(numbers).last(6)),
              {labels.end() - 3, labels.end()}, read("state.npz", "w"), read("state.npz", "b"));
  EXPECT_NEAR(number_after(fewer.out, "validation loss "), own, 1e-5);
  EXPECT_NEAR(number_after(fewer.out, "accuracy "), right, 0.1);
}

TEST_F(Train, ValidatesWithoutLabels) {
  const Tensor zeros = narrow<double>(DType::F32, {kExamples, 3}, std::vector<double>(3 * kExamples));
  write_data(zeros);
  const Outcome outcome = shell(
      "tenon train model.tenon --data data.npz --validate data.npz --loss mse --optimizer sgd "
      "--learning-rate 0 --checkpoint state.npz --in-order --batch 35");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_NEAR(number_after(outcome.out, "validation loss "), number_after(outcome.out, "step 2: loss "),
              1e-6);
  EXPECT_EQ(outcome.out.find("accuracy"), std::string::npos) << outcome.out;
}

TEST_F(Train, DropsExamplesThatAFixedBatchCannotHold) {
  std::string fixed = kModel;
  fixed.replace(fixed.find("batch"), 5, "16");
  folder_.write("fixed.tenon", fixed);
  const std::string train =
      "tenon train fixed.tenon --data data.npz --loss cross_entropy --checkpoint state.npz --validate ";
  EXPECT_NE(shell(train + "data.npz").out.find("6 examples of data.npz dropped, which do not fill a batch\n"),
            std::string::npos);
  write_npz(folder_ / "few.npz", {{"x", narrow<double>(DType::F32, {3, 2}, std::vector<double>(6))},
                                  {"target", Tensor::of<int64_t>({0, 1, 2})}});
  expect_refused(train + "few.npz", "few.npz: 3 examples do not fill a batch of 16");
}

// The better it learns the examples, the worse it does on those with other labels.
TEST_F(Train, KeepsTheBestModel) {
  std::vector<int64_t> others = labels_;
  for (int64_t& label : others)
    label = (label + 1) % 3;
  write_npz(folder_ / "others.npz", {{"x", x_}, {"target", Tensor::of<int64_t>(others)}});
  const std::string train = std::string(kTrain) + "--validate others.npz --checkpoint state.npz ";
  const Outcome first = shell(train + "--epochs 1 --keep best -o best.onnx");
  EXPECT_NE(first.out.find(", the best so far\n"), std::string::npos) << first.out << first.error;
  const std::string best = read_file(folder_ / "best.onnx");
  const Outcome resumed = shell(train + "--epochs 5 --resume --keep best -o best.onnx");
  EXPECT_NE(resumed.out.find("epoch 5, step 20: validation loss "), std::string::npos) << resumed.out;
  EXPECT_EQ(resumed.out.find("the best so far"), std::string::npos) << resumed.out;
  EXPECT_NE(resumed.out.find("kept best.onnx of the earlier run\n"), std::string::npos) << resumed.out;
  EXPECT_EQ(read_file(folder_ / "best.onnx"), best);
  ASSERT_EQ(shell(train + "--epochs 6 --resume -o last.onnx").status, 0);
  EXPECT_NE(read_file(folder_ / "last.onnx"), best);
  EXPECT_EQ(shell(train + "--epochs 6 --resume --keep best -o none.onnx").error,
            "tenon: none.onnx was not written: the lowest loss on others.npz was before state.npz, which has "
            "the last state alone\n");
}

// A file that is there already is no model of this run.
TEST_F(Train, KeepsNoModelWithoutAFiniteLoss) {
  write_data(narrow<double>(DType::F32, {kExamples, 3}, std::vector<double>(3 * kExamples)));
  write_npz(
      folder_ / "far.npz",
      {{"x", x_},
       {"target", narrow<double>(DType::F32, {kExamples, 3}, std::vector<double>(3 * kExamples, 1e30))}});
  const std::string message = "best.onnx was not written: the loss on far.npz was never a finite number";
  const std::string train =
      "tenon train model.tenon --data data.npz --validate far.npz --loss mse --keep best -o best.onnx";
  const auto expect_none = [&] {
    const Outcome outcome = shell(train);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.out.find("validation loss inf\n"), std::string::npos) << outcome.out;
    EXPECT_EQ(outcome.error, "tenon: " + message + "\n");
  };
  expect_none();
  EXPECT_FALSE(std::filesystem::exists(folder_ / "best.onnx"));
  folder_.write("best.onnx", "of before");
  expect_none();
  EXPECT_EQ(read_file(folder_ / "best.onnx"), "of before");
}

// No epoch is wasted on examples that say nothing.
TEST_F(Train, RefusesToValidateWithoutLabelsThatCount) {
  write_npz(folder_ / "none.npz",
            {{"x", x_}, {"target", Tensor::of<int64_t>(std::vector<int64_t>(kExamples, -100))}});
  expect_refused(std::string(kTrain) + "--validate none.npz --ignore-label -100 --checkpoint state.npz",
                 "none.npz: no label counts");
}

TEST_F(Train, SumsGradientsOverBatches) {
  const std::string train =
      "tenon train model.tenon --data data.npz --loss cross_entropy --learning-rate 0.05 --in-order "
      "--checkpoint ";
  ASSERT_EQ(shell(train + "whole.npz --batch 32").status, 0);
  const Outcome outcome = shell(train + "parts.npz --batch 8 --accumulate 4");
  EXPECT_NE(outcome.out.find("6 examples of each epoch dropped, which do not fill a step\n"),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("epoch 1, step 2: loss "), std::string::npos) << outcome.out;
  for (const char* name : {"w", "b", "w.exp_avg"})
    expect_near(read("parts.npz", name), read("whole.npz", name), 1e-6);
  expect_refused(train + "a.npz --batch 30 --accumulate 3",
                 "data.npz: 70 examples do not fill 3 batches of 30");
}

TEST_F(Train, RefusesNumbersThatCannotBe) {
  const std::string train = std::string(kTrain) + "--checkpoint state.npz ";
  expect_refused(train + "--epochs 9223372036854775807",
                 "--epochs 9223372036854775807: more steps than can be counted");
  ASSERT_EQ(shell(train).status, 0);
  NamedTensors state = read_npz(folder_ / "state.npz");
  const auto with = [&](const std::string& name, Tensor value) {
    NamedTensors changed = state;
    std::ranges::find(changed, name, &NamedTensors::value_type::first)->second = std::move(value);
    write_npz(folder_ / "state.npz", changed);
    expect_refused(train + "--resume", "state.npz: it is no checkpoint of tenon train");
  };
  with("step", Tensor::scalar<int64_t>(-5));
  with("tenon:loss", Tensor::of<double>({1, std::nan("")}));
}

TEST_F(Train, SeedsDecideTheOrder) {
  for (const char* run : {"--seed 3 --checkpoint a.npz", "--seed 3 --checkpoint b.npz",
                          "--seed 4 --checkpoint c.npz", "--in-order --checkpoint d.npz"})
    ASSERT_EQ(
        shell("tenon train model.tenon --data data.npz --loss cross_entropy " + std::string(run)).status, 0);
  EXPECT_TRUE(identical(read("a.npz", "w"), read("b.npz", "w")));
  EXPECT_FALSE(identical(read("a.npz", "w"), read("c.npz", "w")));
  EXPECT_FALSE(identical(read("a.npz", "w"), read("d.npz", "w")));
}

TEST_F(Train, RefusesLabelsThatAreNoClasses) {
  labels_[5] = 3;
  write_data(Tensor::of<int64_t>(labels_));
  const std::string train = "tenon train model.tenon --data data.npz --loss cross_entropy -o out.onnx";
  expect_refused(train, "data.npz: \"target\" has the label 3 in example 5, but the model has 3 classes");
  labels_[5] = -1;
  write_data(Tensor::of<int64_t>(labels_));
  expect_refused(train,
                 "data.npz: \"target\" has the label -1 in example 5, but the model has 3 classes\n"
                 "  hint: --ignore-label -1 leaves it out");
  EXPECT_EQ(shell(train + " --ignore-label -1").status, 0);
}

TEST_F(Train, TakesLabelsOfAnyIntegerType) {
  std::vector<uint8_t> bytes(labels_.begin(), labels_.end());
  const std::string train = "tenon train model.tenon --data data.npz --loss cross_entropy --checkpoint ";
  ASSERT_EQ(shell(train + "a.npz").status, 0);
  write_data(Tensor::of<uint8_t>(bytes));
  ASSERT_EQ(shell(train + "b.npz").status, 0);
  EXPECT_TRUE(identical(read("a.npz", "w"), read("b.npz", "w")));
}

TEST_F(Train, RefusesATargetThatDoesNotFit) {
  expect_refused(
      "tenon train model.tenon --data data.npz --loss mse -o out.onnx",
      "data.npz: batches of \"target\" are i64[32], but mse of the model's output takes f32[32,3]");
  expect_refused("tenon train model.tenon --data data.npz --loss mse --target y -o out.onnx",
                 "data.npz: there is no \"y\" with what the model should give\n  hint: --target names it");
  write_npz(folder_ / "short.npz", {{"x", x_}, {"target", Tensor::of<int64_t>({1, 2})}});
  expect_refused("tenon train model.tenon --data short.npz --loss cross_entropy -o out.onnx",
                 "short.npz: \"target\" has 2 examples, but others have 70");
  expect_refused("tenon train model.tenon --data data.npz --loss cross_entropy --batch 71 -o out.onnx",
                 "data.npz: 70 examples do not fill a batch of 71");
}

TEST_F(Train, StopsWhereTheLossIsNoNumber) {
  const Outcome outcome = shell(
      "tenon train model.tenon --data data.npz --loss cross_entropy --optimizer sgd --learning-rate 1e30 "
      "--weight-decay 1e10 --batch 8 --epochs 3 --checkpoint-every 1 --checkpoint state.npz");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.error.find("tenon: the loss is "), std::string::npos) << outcome.error;
  EXPECT_NE(outcome.error.find("; state.npz has the state of a step before\n"
                               "  hint: a smaller --learning-rate, or --clip-norm\n"),
            std::string::npos)
      << outcome.error;
}

TEST_F(Train, RefusesOptionsThatDoNotGoTogether) {
  const std::string train = "tenon train model.tenon --data data.npz --loss cross_entropy ";
  expect_refused(train, "nothing would be kept\n  hint: -o names the trained model, --checkpoint the state");
  expect_refused(train + "-o a.onnx --epochs 1 --steps 2",
                 "--epochs and --steps both say how long it trains");
  expect_refused(train + "-o a.onnx --resume", "--resume is for a checkpoint, which --checkpoint names");
  const std::string keeps = "--keep best is for the model of -o, by the loss on the examples of --validate";
  expect_refused(train + "-o a.onnx --keep best", keeps);
  expect_refused(train + "--checkpoint a.npz --validate data.npz --keep best", keeps);
  expect_refused(train + "-o a.onnx --validate none.npz", "cannot open none.npz: No such file or directory");
  expect_refused(train + "-o a.onnx --momentum 0.9", "--momentum is for sgd, but what was chosen is adamw");
  expect_refused(train + "-o a.onnx --decay-every 3",
                 "--decay-every is for --schedule step, but what was chosen is constant");
  expect_refused(train + "-o a.onnx --schedule step",
                 "--schedule step changes the rate after --decay-every steps, which is not given");
  expect_refused(train + "--checkpoint data.npz", "data.npz holds the examples, which would be lost");
  expect_refused("tenon train-step model.tenon --loss mse --label-smoothing 0.1",
                 "--label-smoothing is for --loss cross_entropy, but what was chosen is mse");
  expect_refused("tenon train-step model.tenon --loss mse --schedule cosine",
                 "--schedule cosine ends with the last step\n  hint: --steps says how many there are");
  expect_refused(train + "-o a.onnx --clip-norm 0", "--clip-norm 0 would leave nothing of the gradients");
  const Outcome none = shell(train + "-o a.onnx --epochs 0");
  EXPECT_EQ(none.status, 2);
  EXPECT_NE(none.error.find("it must be a whole number from 1 up, but is 0"), std::string::npos)
      << none.error;
  EXPECT_EQ(files(), (std::set<std::string>{"data.npz", "model.tenon"}));
}

TEST_F(Train, RefusesExamplesWithoutNumbers) {
  std::vector<double> x = widen<double>(x_);
  x[2 * 7 + 1] = std::nan("");
  x_ = narrow<double>(DType::F32, {kExamples, 2}, x);
  write_data(Tensor::of<int64_t>(labels_));
  expect_refused("tenon train model.tenon --data data.npz --loss cross_entropy -o a.onnx",
                 "data.npz: \"x\" has a NaN in example 7");
  write_npz(folder_ / "data.npz", {{"x", Tensor(DType::String, {kExamples, 2})}, {"target", x_}});
  expect_refused("tenon train model.tenon --data data.npz --loss cross_entropy -o a.onnx",
                 "data.npz: \"x\" holds strings, but training takes numbers");
}

TEST_F(Train, RefusesTheCheckpointOfAnotherOptimizer) {
  ASSERT_EQ(shell(std::string(kTrain) + "--checkpoint state.npz").status, 0);
  expect_refused(
      "tenon train model.tenon --data data.npz --loss cross_entropy --optimizer sgd --momentum 0.5 "
      "--checkpoint state.npz --resume",
      "state.npz: there is no \"w.momentum_buffer\": it is a checkpoint of another model or optimizer");
  write_npz(folder_ / "state.npz", {{"w", Tensor(DType::F32, {1})}});
  expect_refused(std::string(kTrain) + "--checkpoint state.npz --resume",
                 "state.npz: \"w\" is f32[1], but that of the model is f32[2,3]");
}

// The step as a file, run by itself.
TEST_F(Train, WritesAStep) {
  expect_done(
      "tenon train-step model.tenon --dim batch=70 --loss cross_entropy --optimizer sgd -o step.onnx --state "
      "state.npz",
      "2 weights, 9 numbers; the state takes 44 B\n");
  NamedTensors inputs = read_npz(folder_ / "state.npz");
  inputs.emplace_back("x", x_);
  inputs.emplace_back("target", Tensor::of<int64_t>(labels_));
  write_npz(folder_ / "in.npz", inputs);
  ASSERT_EQ(shell("tenon run step.onnx --inputs in.npz --outputs out.npz").status, 0);
  ASSERT_EQ(shell("tenon train model.tenon --data data.npz --loss cross_entropy --optimizer sgd --batch 70 "
                  "--in-order --checkpoint trained.npz")
                .status,
            0);
  EXPECT_EQ(as_int(read("out.npz", "next_step")), 1);
  const auto got = widen<double>(read("out.npz", "next_w")), wanted = widen<double>(read("trained.npz", "w"));
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-6);
  const Outcome shown = shell("tenon train-step model.tenon --loss cross_entropy --freeze b | head -n 1");
  EXPECT_EQ(shown.out,
            "graph main(%x: f32[batch,2], %target: i64[batch], %w: f32[2,3], %w.exp_avg: f32[2,3], "
            "%w.exp_avg_sq: f32[2,3], %step: i64[]) {\n");
}

}  // namespace
}  // namespace tenon::cli
