// Weights whose elements may change between two runs: what is made of them is made anew, and nothing else is.
#include "compiler/expect_compiled.h"
#include "passes/pipeline.h"

namespace tenon {
namespace {

using runtime::Executor;

class Weight : public DeferredElements {
 public:
  explicit Weight(Tensor tensor) : tensor_(std::move(tensor)) {}
  void set(Tensor tensor) { tensor_ = std::move(tensor); }
  Tensor tensor() const override { return tensor_; }
  bool varies() const override { return true; }

 private:
  Tensor tensor_;
};

// A graph whose inputs called p… are parameters that vary; those called w… are constants.
struct Model {
  explicit Model(std::string_view text) : graph(read(text)) {
    for (Value input : graph->inputs()) {
      if (!input.name().starts_with("p"))
        continue;
      const Extents extents = *input.shape().extents();
      weights.push_back(std::make_shared<Weight>(numbers(input.dtype(), extents, weights.size())));
      const InsertBefore here(graph->first());
      input.replace_all_uses(
          parameter(*graph, input.name(), Literal::deferred(input.dtype(), extents, weights.back())));
    }
  }

  void change(uint64_t seed) {
    for (const std::shared_ptr<Weight>& weight : weights) {
      const Tensor now = weight->tensor();
      weight->set(numbers(now.dtype(), now.extents(), ++seed));
    }
  }

  // As they are fed where inputs that became weights are not used any more.
  Data inputs() const {
    Data data;
    for (Value input : graph->inputs()) {
      Extents extents;
      for (const Dim& dim : input.shape().dims())
        extents.push_back(dim.constant().value_or(6));
      data.emplace_back(numbers(input.dtype(), extents, 7 + data.size()));
    }
    return data;
  }

  std::unique_ptr<Graph> graph;
  std::vector<std::shared_ptr<Weight>> weights;
};

void expect_follows(std::string_view text) {
  Model model(text);
  const std::unique_ptr<Graph> optimised = model.graph->clone();
  Journal journal;
  optimize(*optimised, journal, {.disabled = {"freeze-parameters"}});
  const std::unique_ptr<Executor> executor = compile(*optimised, without_cache());
  const Data inputs = model.inputs();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const std::vector<double> wanted = widen<double>(evaluate(*model.graph, inputs).front().tensor()),
                              got = widen<double>(executor->run(inputs).front().tensor());
    ASSERT_EQ(got.size(), wanted.size());
    double largest = 0, error = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      largest = std::max(largest, std::fabs(wanted[i]));
      error = std::max(error, std::fabs(got[i] - wanted[i]));
    }
    EXPECT_GT(largest, 0.1);
    EXPECT_LE(error, 1e-5 * largest) << "after " << seed << " changes";
    model.change(100 * (seed + 1));
    executor->renew_constants();
  }
}

TEST(VaryingWeights, ArePackedAnew) {
  expect_follows("graph(%x: f32[20,64], %p: f32[64,48]) { %y = matmul(%x, %p) return %y }");
  expect_follows(R"(graph(%x: f32[2,16,9,9], %p: f32[24,16,3,3]) {
    %y = conv(%x, %p, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1)
    return %y
  })");
}

TEST(VaryingWeights, AreFoldedAnew) {
  expect_follows(R"(graph(%x: f32[2,8,9,9], %p: f32[12,8,3,3], %ps: f32[12], %pb: f32[12]) {
    %0 = conv(%x, %p, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1)
    %s = unsqueeze(%ps, axes=[0,2,3])
    %1 = mul(%0, %s)
    %b = unsqueeze(%pb, axes=[0,2,3])
    %2 = add(%1, %b)
    %y = relu(%2)
    return %y
  })");
}

TEST(VaryingWeights, StandBesideSomeThatDoNot) {
  expect_follows(R"(graph(%x: f32[20,64], %p: f32[64,24], %w: f32[64,24], %w2: f32[64,1]) {
    %0 = mul(%w, %w2)
    %1 = concat([%p, %0], axis=1)
    %2 = matmul(%x, %1)
    %3 = mul(%p, %w2)
    %4 = matmul(%x, %3)
    %5 = concat([%2, %4], axis=1)
    return %5
  })");
}

TEST(VaryingWeights, AreKnownToNestedGraphs) {
  expect_follows(R"(graph(%x: f32[4,16], %p: f32[16,16]) {
    %n = constant(value=i64[] {3})
    %y = while(%n, carried=[%x], captured=[%p]) body(%i: i64[], %c: f32[4,16], %w: f32[16,16]) {
      %go = constant(value=bool[] {1})
      %0 = matmul(%c, %w)
      %1 = tanh(%0)
      return %go, %1
    }
    return %y
  })");
}

TEST(VaryingWeights, AreThoseOfHotSizes) {
  expect_follows("graph(%x: f32[n,64], %p: f32[64,48]) { %y = matmul(%x, %p) return %y }");
  expect_follows(R"(graph(%x: f32[n,16,h,9], %p: f32[24,16,3,3]) {
    %y = conv(%x, %p, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1)
    return %y
  })");
}

TEST(VaryingWeights, AreNotMergedThoughTheyAreEqualNow) {
  Model model(R"(graph(%x: f32[4,8], %p: f32[8,8], %p2: f32[8,8]) {
    %0 = matmul(%x, %p)
    %1 = matmul(%x, %p2)
    %y = concat([%0, %1], axis=1)
    return %y
  })");
  model.weights[1]->set(model.weights[0]->tensor());
  const std::unique_ptr<Executor> executor = compile(*model.graph, without_cache());
  model.weights[1]->set(numbers(DType::F32, {8, 8}, 5));
  executor->renew_constants();
  const Data inputs = model.inputs();
  const auto got = widen<double>(executor->run(inputs).front().tensor()),
             wanted = widen<double>(evaluate(*model.graph, inputs).front().tensor());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

}  // namespace
}  // namespace tenon
