// SVMClassifier: labels and scores are those of ONNX Runtime 1.31.
#include "frontends/onnx/write/write.h"
#include "frontends/onnx_run.h"
#include "ir/equal.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const Tensor kX = f32({3, 2}, {1, 2, 3, -4, 0, 0});

Bytes classifier(const Messages& attributes, const Bytes& type = type_of_input(kX)) {
  return model_of(OneNode{.op = "SVMClassifier",
                          .types = {type},
                          .attributes = attributes,
                          .opset = 1,
                          .domain = "ai.onnx.ml",
                          .outputs = 2});
}

Messages joined(Messages attributes, const Messages& more) {
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}

void expect_classified(const Messages& attributes, const Tensor& labels, const Tensor& scores) {
  const std::unique_ptr<Graph> graph = import(classifier(attributes));
  const Data results = evaluate(*graph, {kX});
  EXPECT_TRUE(identical(results[0].tensor(), labels));
  expect_near(results[1].tensor(), scores, 1e-6);
  const TemporaryFolder folder;
  write_onnx(*graph, folder / "m.onnx");
  EXPECT_EQ(difference(*graph, *read_onnx(folder / "m.onnx")), "");
}

Tensor letters(std::vector<std::string> labels) {
  const auto count = static_cast<int64_t>(labels.size());
  return Tensor::strings(std::move(labels), {count});
}
Tensor numbers(const std::vector<int64_t>& labels) { return Tensor::of(labels); }

const Messages kThree = {strings_attribute("classlabels_strings", {"a", "b", "c"}),
                         ints_attribute("vectors_per_class", {1, 2, 1}),
                         floats_attribute("support_vectors", {1, 1, 0, 2, -1, 0, 2, -2}),
                         floats_attribute("coefficients", {0.5, -2, 1, 0.25, 1, 0.75, -0.5, -1}),
                         floats_attribute("rho", {0.1F, -0.2F, 0.3F}),
                         string_attribute("kernel_type", "RBF"),
                         floats_attribute("kernel_params", {0.25, 0, 0})};
const Messages kTwo = {ints_attribute("classlabels_ints", {7, 9}),
                       ints_attribute("vectors_per_class", {1, 1}),
                       floats_attribute("support_vectors", {1, 1, 0, 2}),
                       floats_attribute("coefficients", {0.5, -0.25}),
                       floats_attribute("rho", {0.1F}),
                       string_attribute("kernel_type", "LINEAR"),
                       floats_attribute("kernel_params", {0, 0, 0})};

TEST(OnnxSvmClassifier, LetsPairsOfClassesVote) {
  expect_classified(kThree, letters({"b", "a", "a"}),
                    f32({3, 3}, {-0.9328659, 0.5823668, 0.8021687, 0.1006645, -0.1276636, 0.01333723,
                                 0.4463072, 0.4403645, 0.05117394}));
  expect_classified(joined(kThree, {string_attribute("post_transform", "SOFTMAX")}), letters({"b", "a", "a"}),
                    f32({3, 3}, {0.08912969, 0.405583, 0.5052873, 0.3686989, 0.2934338, 0.3378672, 0.3748597,
                                 0.3726386, 0.2525018}));
  expect_classified(joined(kThree, {string_attribute("post_transform", "LOGISTIC")}),
                    letters({"b", "a", "a"}),
                    f32({3, 3}, {0.2823437, 0.6416118, 0.6904382, 0.5251449, 0.4681274, 0.5033343, 0.6097609,
                                 0.6083459, 0.5127907}));
}

TEST(OnnxSvmClassifier, MakesProbabilitiesOfThoseOfPairs) {
  expect_classified(joined(kThree, {floats_attribute("prob_a", {-1, -2, -0.5}),
                                    floats_attribute("prob_b", {0.1F, 0, -0.2F})}),
                    letters({"b", "a", "a"}),
                    f32({3, 3}, {0.2585322, 0.553373, 0.1880947, 0.306897, 0.3576961, 0.3354067, 0.4722085,
                                 0.3110988, 0.2166927}));
  expect_classified(joined(kTwo, {floats_attribute("prob_a", {-1}), floats_attribute("prob_b", {0.5})}),
                    numbers({7, 7, 7}),
                    f32({3, 2}, {0.5249763, 0.4750238, 0.7502601, 0.24974, 0.4004672, 0.5995329}));
}

TEST(OnnxSvmClassifier, GivesTwoClassesWhatFollowsFromOneScore) {
  const auto expect = [](const std::string& transform, const Tensor& scores) {
    expect_classified(joined(kTwo, {string_attribute("post_transform", transform)}), numbers({7, 7, 7}),
                      scores);
  };
  expect("NONE", f32({3, 2}, {-0.6, 0.6, -1.6, 1.6, -0.1, 0.1}));
  expect("LOGISTIC", f32({3, 2}, {0.3543437, 0.6456563, 0.1679816, 0.8320184, 0.4750208, 0.5249792}));
  expect("SOFTMAX", f32({3, 2}, {0.4, 0.6, -0.6, 1.6, 0.9, 0.1}));
}

TEST(OnnxSvmClassifier, IsLinearWithoutSupportVectors) {
  const auto linear = [](const std::vector<float>& coefficients, float rho,
                         const std::vector<int64_t>& labels) {
    return Messages{ints_attribute("classlabels_ints", labels),
                    floats_attribute("coefficients", coefficients), floats_attribute("rho", {rho}),
                    floats_attribute("kernel_params", {0, 0, 0})};
  };
  expect_classified(linear({1, 2, -1, 0.5}, 0.5, {7, 9}), numbers({9, 7, 9}),
                    f32({3, 2}, {5.5, 0.5, -4.5, -4.5, 0.5, 0.5}));
  // Where no coefficient is negative, scores are probabilities: the second class wins from a half on.
  expect_classified(linear({0.1F, 0.2F, 0, 0.1F}, 0.1F, {7, 9}), numbers({9, 9, 7}),
                    f32({3, 2}, {0.6, 0.3, -0.4, -0.3, 0.1, 0.1}));
  expect_classified(linear({1, 2, -1, 0.5, 0, 1}, 0.5, {7, 8, 9}), numbers({7, 9, 7}),
                    f32({3, 3}, {5.5, 0.5, 2.5, -4.5, -4.5, -3.5, 0.5, 0.5, 0.5}));
}

TEST(OnnxSvmClassifier, TakesOneRowAsAVector) {
  const Data results = run_all(classifier(kTwo, tensor_type(kInt64, {2})), {i64({2}, {1, 2})});
  EXPECT_TRUE(identical(results[0].tensor(), numbers({7})));
  expect_near(results[1].tensor(), f32({1, 2}, {-0.6, 0.6}), 1e-6);
}

TEST(OnnxSvmClassifier, SaysWhatIsWrong) {
  const auto refuse = [](const Messages& attributes, const std::string& message) {
    onnx::refuse(classifier(attributes), "node \"n\": " + message);
  };
  Messages attributes = kTwo;
  attributes[0] = ints_attribute("classlabels_ints", {7});
  refuse(attributes, "svm_classifier: it needs at least two labels, but has 1");
  attributes = kTwo;
  attributes[1] = ints_attribute("vectors_per_class", {1, 1 << 20});
  refuse(attributes, "svm_classifier: counts are [1,1048576]");
  attributes[1] = ints_attribute("vectors_per_class", {2});
  refuse(attributes, "svm_classifier: it has 1 counts, but needs 2");
  attributes = kTwo;
  attributes[2] = floats_attribute("support_vectors", {1, 2, 3});
  refuse(attributes, "svm_classifier: it has 3 numbers in support vectors, but needs 2");
  attributes = kTwo;
  attributes[3] = floats_attribute("coefficients", {1});
  refuse(attributes, "svm_classifier: it has 1 coefficients, but needs 2");
  attributes = kTwo;
  attributes[4] = floats_attribute("rho", {1, 2});
  refuse(attributes, "svm_classifier: it has 2 numbers in rho, but needs 1");
  refuse(joined(kTwo, {floats_attribute("prob_a", {1})}),
         "svm_classifier: it has 0 numbers in prob_b, but needs 1");
  onnx::refuse(classifier(kTwo, tensor_type(kFloat, {1, 3})),
               "node \"n\": svm_classifier: x needs 2 features\n  x  %x0: f32[1,3]");
  onnx::refuse<UnsupportedError>(classifier(joined(kTwo, {string_attribute("post_transform", "PROBIT")})),
                                 "node \"n\": svm_classifier: probit of a single score");
}

}  // namespace
}  // namespace tenon::onnx
