// ONNX's classical models: labels, features, linear models, support vectors and trees.
#include <cmath>

#include "frontends/onnx_run.h"

namespace tenon::onnx {
namespace {

using namespace encode;

// A model of one node of domain ai.onnx.ml for inputs like these.
Bytes ml_model(const std::string& op, const Data& inputs, const Messages& attributes, int outputs = 1,
               int64_t version = 3) {
  Messages types;
  for (const Datum& input : inputs)
    types.push_back(type_of_input(input.tensor()));
  return model_of({.op = op,
                   .types = types,
                   .attributes = attributes,
                   .opset = version,
                   .domain = "ai.onnx.ml",
                   .outputs = outputs});
}

Data run_ml(const std::string& op, const Data& inputs, const Messages& attributes, int outputs = 1,
            int64_t version = 3) {
  return run_all(ml_model(op, inputs, attributes, outputs, version), inputs);
}

template <class Error = UserError>
void refuse_ml(const std::string& op, const Data& inputs, const Messages& attributes,
               const std::string& message, int outputs = 1) {
  refuse<Error>(ml_model(op, inputs, attributes, outputs), "node \"n\": " + message);
}

Tensor strings(std::vector<std::string> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::strings(std::move(values), {count});
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Tensor kX = f32({3, 2}, {1, 2, 3, -4, 0, 0});

// --- labels

TEST(OnnxLabels, AreEncodedBothWaysInOpset1) {
  const Messages classes = {strings_attribute("classes_strings", {"a", "b"})};
  expect_tensor(run_ml("LabelEncoder", {strings({"b", "?"})}, classes, 1, 1)[0], i64({2}, {1, -1}));
  expect_tensor(run_ml("LabelEncoder", {i64({2}, {0, 9})}, classes, 1, 1)[0], strings({"a", "_Unused"}));
}

TEST(OnnxLabels, AreEncodedByKeysAndValues) {
  expect_tensor(run_ml("LabelEncoder", {f32({2}, {1.5, 9})},
                       {floats_attribute("keys_floats", {1.5}), floats_attribute("values_floats", {10})})[0],
                f32({2}, {10, -0.0}));
  expect_tensor(run_ml("LabelEncoder", {strings({"b", "?"})},
                       {strings_attribute("keys_strings", {"a", "b"}),
                        ints_attribute("values_int64s", {3, 4}), int_attribute("default_int64", 7)})[0],
                i64({2}, {4, 7}));
  expect_tensor(run_ml("LabelEncoder", {i64({2}, {5, 6})},
                       {ints_attribute("keys_int64s", {5}), strings_attribute("values_strings", {"five"}),
                        string_attribute("default_string", "none")})[0],
                strings({"five", "none"}));
  expect_tensor(run_ml("LabelEncoder", {i64({2}, {5, 6})},
                       {tensor_attribute("keys_tensor", encode::tensor<int64_t>("", {1}, {5})),
                        tensor_attribute("values_tensor", encode::tensor<double>("", {1}, {0.5})),
                        tensor_attribute("default_tensor", encode::tensor<double>("", {1}, {-2}))},
                       1, 4)[0],
                tensor(DType::F64, {2}, {0.5, -2}));
  refuse_ml("LabelEncoder", {i64({1}, {5})}, {ints_attribute("keys_int64s", {5})},
            "LabelEncoder: attribute values_strings is missing");
}

TEST(OnnxLabels, AreMappedFromCategoriesBothWays) {
  const Messages categories = {ints_attribute("cats_int64s", {10, 20}),
                               strings_attribute("cats_strings", {"a", "b"}),
                               int_attribute("default_int64", -5)};
  expect_tensor(run_ml("CategoryMapper", {strings({"b", "?"})}, categories)[0], i64({2}, {20, -5}));
  expect_tensor(run_ml("CategoryMapper", {i64({2}, {20, 1})}, categories)[0], strings({"b", "_Unused"}));
}

TEST(OnnxLabels, BecomeOneHotVectors) {
  const Bytes integers = ints_attribute("cats_int64s", {3, 7});
  expect_tensor(run_ml("OneHotEncoder", {f32({2}, {7.9, 4})}, {integers})[0], f32({2, 2}, {0, 1, 0, 0}));
  expect_tensor(
      run_ml("OneHotEncoder", {strings({"b", "a"})}, {strings_attribute("cats_strings", {"a", "b"})})[0],
      f32({2, 2}, {0, 1, 1, 0}));
  expect_error<UserError>(
      [&] {
        run_ml("OneHotEncoder", {i64({1}, {4})}, {integers, int_attribute("zeros", 0)});
      },
      "node \"n\": gather: index 2 is out of range for dimension 0 of size 2");
  refuse_ml("OneHotEncoder", {i64({1}, {4})}, {},
            "OneHotEncoder: it needs either cats_int64s or cats_strings");
}

// --- features

TEST(OnnxFeatures, AreExtracted) {
  expect_tensor(run_ml("ArrayFeatureExtractor", {kX, i64({2}, {1, 0})}, {})[0],
                f32({3, 2}, {2, 1, -4, 3, 0, 0}));
  expect_tensor(run_ml("ArrayFeatureExtractor", {kX, i64({1, 1}, {1})}, {})[0], f32({3, 1}, {2, -4, 0}));
  // A vector is a row.
  expect_tensor(run_ml("ArrayFeatureExtractor", {f32({3}, {5, 6, 7}), i64({1}, {2})}, {})[0],
                f32({1, 1}, {7}));
}

TEST(OnnxFeatures, AreBinarized) {
  expect_tensor(run_ml("Binarizer", {f32({3}, {1, 1.5, 2})}, {float_attribute("threshold", 1.5)})[0],
                f32({3}, {0, 0, 1}));
  // -0.5 is between two integers.
  expect_tensor(run_ml("Binarizer", {i64({3}, {-1, 0, 1})}, {float_attribute("threshold", -0.5F)})[0],
                i64({3}, {0, 1, 1}));
}

TEST(OnnxFeatures, AreScaled) {
  const Bytes offset = floats_attribute("offset", {1, 2}), scale = floats_attribute("scale", {10, 0.5});
  expect_tensor(run_ml("Scaler", {kX}, {offset, scale})[0], f32({3, 2}, {0, 0, 20, -3, -10, -1}));
  expect_tensor(run_ml("Scaler", {i64({1, 2}, {3, 4})}, {scale})[0], f32({1, 2}, {30, 2}));
}

TEST(OnnxFeatures, AreNormalized) {
  const Tensor x = f32({2, 2}, {3, -4, 0, 0});
  const auto normalized = [&](const std::string& norm) {
    return run_ml("Normalizer", {x}, {string_attribute("norm", norm)})[0];
  };
  expect_tensor(normalized("MAX"), f32({2, 2}, {1, -4.0 / 3, 0, 0}));
  expect_tensor(normalized("L1"), f32({2, 2}, {3.0 / 7, -4.0 / 7, 0, 0}));
  expect_tensor(normalized("L2"), f32({2, 2}, {3.0 / 5, -4.0 / 5, 0, 0}));
  refuse_ml("Normalizer", {x}, {string_attribute("norm", "L3")},
            R"(Normalizer: norm is "L3", but must be MAX, L1 or L2)");
}

TEST(OnnxFeatures, AreImputed) {
  const double nan = std::nan("");
  expect_tensor(run_ml("Imputer", {f32({2, 2}, {1, nan, nan, 4})},
                       {floats_attribute("imputed_value_floats", {7, 8}),
                        float_attribute("replaced_value_float", NAN)})[0],
                f32({2, 2}, {1, 8, 7, 4}));
  expect_tensor(run_ml("Imputer", {f32({2}, {0, nan})}, {floats_attribute("imputed_value_floats", {7})})[0],
                f32({2}, {7, nan}));
  expect_tensor(
      run_ml("Imputer", {i64({3}, {-1, 1, 0})},
             {ints_attribute("imputed_value_int64s", {7}), int_attribute("replaced_value_int64", -1)})[0],
      i64({3}, {7, 1, 0}));
  refuse_ml("Imputer", {kX}, {}, "Imputer: attribute imputed_value_floats is missing");
}

TEST(OnnxFeatures, AreJoined) {
  const Bytes sizes = ints_attribute("inputdimensions", {2, 1});
  expect_tensor(run_ml("FeatureVectorizer", {kX, i64({3, 1}, {5, 6, 7})}, {sizes})[0],
                f32({3, 3}, {1, 2, 5, 3, -4, 6, 0, 0, 7}));
  expect_tensor(run_ml("FeatureVectorizer", {f32({2}, {1, 2}), f32({1}, {3})}, {sizes})[0],
                f32({1, 3}, {1, 2, 3}));
  refuse_ml("FeatureVectorizer", {kX}, {sizes}, "FeatureVectorizer: it has 1 inputs, but 2 inputdimensions");
  refuse_ml<UnsupportedError>("FeatureVectorizer", {kX, kX}, {sizes},
                              "FeatureVectorizer: input 1 is f32[3,2], but inputdimensions say 1");
}

// --- linear models and support vectors

TEST(OnnxLinear, RegressorHasARowOfCoefficientsForEachTarget) {
  const Bytes coefficients = floats_attribute("coefficients", {1, 2, 3, 4}),
              two = int_attribute("targets", 2);
  expect_tensor(
      run_ml("LinearRegressor", {kX}, {coefficients, two, floats_attribute("intercepts", {10, 20})})[0],
      f32({3, 2}, {15, 31, 5, 13, 10, 20}));
  refuse_ml("LinearRegressor", {kX}, {coefficients, int_attribute("targets", 3)},
            "LinearRegressor: 4 coefficients do not divide into 3 rows");
  refuse_ml("LinearRegressor", {kX}, {coefficients, two, string_attribute("post_transform", "TANH")},
            R"(LinearRegressor: post_transform is "TANH", which has no meaning)");
}

TEST(OnnxLinear, ClassifierTakesTheGreatestScore) {
  const Messages attributes = {floats_attribute("coefficients", {1, 0, 0, 1, -1, -1}),
                               strings_attribute("classlabels_strings", {"a", "b", "c"})};
  const Data result = run_ml("LinearClassifier", {kX}, attributes, 2);
  expect_tensor(result[0], strings({"b", "a", "a"}));
  expect_tensor(result[1], f32({3, 3}, {1, 2, -3, 3, -4, 1, 0, 0, 0}));
}

TEST(OnnxLinear, OneRowDecidesBetweenTwoClasses) {
  const Bytes coefficients = floats_attribute("coefficients", {1, 2}),
              intercepts = floats_attribute("intercepts", {-1});
  const Data result = run_ml("LinearClassifier", {kX},
                             {coefficients, intercepts, ints_attribute("classlabels_ints", {5, 7})}, 2);
  expect_tensor(result[0], i64({3}, {7, 5, 5}));
  expect_tensor(result[1], f32({3, 2}, {-4, 4, 6, -6, 1, -1}));
  refuse_ml<UnsupportedError>("LinearClassifier", {kX},
                              {coefficients, intercepts, ints_attribute("classlabels_ints", {5, 6, 7})},
                              "LinearClassifier: 1 rows of coefficients for 3 labels", 2);
  refuse_ml("LinearClassifier", {kX}, {coefficients, intercepts},
            "LinearClassifier: it needs either classlabels_ints or classlabels_strings", 2);
}

TEST(OnnxLinear, ScoresAreTransformed) {
  // The scores are x itself.
  const auto transformed = [](const Tensor& x, const std::string& name) {
    return run_ml("LinearRegressor", {x},
                  {floats_attribute("coefficients", {1, 0, 0, 1}), int_attribute("targets", 2),
                   string_attribute("post_transform", name)})[0];
  };
  const Tensor x = f32({1, 2}, {1, 0});
  expect_tensor(transformed(x, "NONE"), x);
  expect_near(transformed(x, "LOGISTIC"), f32({1, 2}, {sigmoid(1), 0.5}), 1e-6);
  expect_near(transformed(x, "SOFTMAX"), f32({1, 2}, {sigmoid(1), sigmoid(-1)}), 1e-6);
  expect_near(transformed(x, "SOFTMAX_ZERO"), x, 1e-6);
  // The quantiles of the normal distribution, by an approximation that is good to about three digits.
  expect_near(transformed(f32({1, 2}, {0.975, 0.5}), "PROBIT"), f32({1, 2}, {1.96, 0}), 5e-3);
}

TEST(OnnxSupportVectors, HaveFourKernels) {
  const auto with_kernel = [](const std::string& type, const std::vector<float>& parameters) {
    return run_ml("SVMRegressor", {kX},
                  {string_attribute("kernel_type", type), floats_attribute("kernel_params", parameters),
                   int_attribute("n_supports", 2), floats_attribute("support_vectors", {1, 1, 0, 2}),
                   floats_attribute("coefficients", {0.5, -2}), floats_attribute("rho", {0.25})})[0];
  };
  // The rows times the vectors are 3 and 4, -1 and -8, 0 and 0.
  expect_tensor(with_kernel("LINEAR", {}), f32({3, 1}, {-6.25, 15.75, 0.25}));
  expect_near(with_kernel("POLY", {2, 1, 2}), f32({3, 1}, {24.5 - 162 + 0.25, 0.5 - 450 + 0.25, -1.25}),
              1e-4);
  expect_near(with_kernel("SIGMOID", {0.5, 0, 0}),
              f32({3, 1}, {0.5 * std::tanh(1.5) - 2 * std::tanh(2) + 0.25,
                           0.5 * std::tanh(-0.5) - 2 * std::tanh(-4) + 0.25, 0.25}),
              1e-6);
  // Their squared distances are 1 and 1, 29 and 45, 2 and 4.
  expect_near(with_kernel("RBF", {0.5, 0, 0}),
              f32({3, 1}, {0.5 * std::exp(-0.5) - 2 * std::exp(-0.5) + 0.25,
                           0.5 * std::exp(-14.5) - 2 * std::exp(-22.5) + 0.25,
                           0.5 * std::exp(-1) - 2 * std::exp(-2) + 0.25}),
              1e-6);
}

TEST(OnnxSupportVectors, MayBeNoneOrOfOneClass) {
  const Bytes coefficients = floats_attribute("coefficients", {1, 2}), rho = floats_attribute("rho", {0.5});
  expect_tensor(run_ml("SVMRegressor", {kX}, {coefficients, rho})[0], f32({3, 1}, {5.5, -4.5, 0.5}));
  expect_tensor(run_ml("SVMRegressor", {kX}, {coefficients, rho, int_attribute("one_class", 1)})[0],
                f32({3, 1}, {1, -1, 1}));
  refuse_ml("SVMRegressor", {kX}, {coefficients, floats_attribute("rho", {})}, "SVMRegressor: rho is empty");
  const Messages supports = {coefficients, rho, int_attribute("n_supports", 2),
                             floats_attribute("support_vectors", {1, 2, 3})};
  refuse_ml("SVMRegressor", {kX}, supports,
            "SVMRegressor: 2 coefficients and 3 numbers for 2 support vectors");
  refuse_ml("SVMRegressor", {kX},
            {coefficients, rho, int_attribute("n_supports", 2),
             floats_attribute("support_vectors", {1, 2, 3, 4}), string_attribute("kernel_type", "COSINE")},
            R"(SVMRegressor: kernel_type is "COSINE", but must be one of LINEAR, POLY, RBF, SIGMOID)");
}

// --- trees

// Tree 0: x0 ≤ 1 ? leaf 1 : leaf 2. Tree 1: x1 > 1 ? leaf 1 : leaf 2. The rows of kX end at leaves 1 and 1, 2
// and 2, 1 and 2.
Messages trees(const std::string& votes, const std::vector<int64_t>& targets,
               const std::vector<float>& weights, const Messages& more) {
  Messages attributes = {
      ints_attribute("nodes_treeids", {0, 0, 0, 1, 1, 1}),
      ints_attribute("nodes_nodeids", {0, 1, 2, 0, 1, 2}),
      ints_attribute("nodes_featureids", {0, 0, 0, 1, 0, 0}),
      floats_attribute("nodes_values", {1, 0, 0, 1, 0, 0}),
      strings_attribute("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}),
      ints_attribute("nodes_truenodeids", {1, 0, 0, 1, 0, 0}),
      ints_attribute("nodes_falsenodeids", {2, 0, 0, 2, 0, 0}),
      ints_attribute(votes + "_treeids", {0, 0, 1, 1}),
      ints_attribute(votes + "_nodeids", {1, 2, 1, 2}),
      ints_attribute(votes + "_ids", targets),
      floats_attribute(votes + "_weights", weights),
  };
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}
const Bytes kLabels = ints_attribute("classlabels_int64s", {5, 6});

TEST(OnnxTrees, RegressorAddsBaseValues) {
  const Messages base = {int_attribute("n_targets", 2), floats_attribute("base_values", {0.5, 0.25})};
  expect_tensor(run_ml("TreeEnsembleRegressor", {kX}, trees("target", {0, 1, 0, 1}, {1, 2, 4, 8}, base))[0],
                f32({3, 2}, {5.5, 0.25, 0.5, 10.25, 1.5, 8.25}));
}

TEST(OnnxTrees, RegressorJoinsWeightsAsItIsTold) {
  const auto joined = [](const std::string& function) {
    return ml_model("TreeEnsembleRegressor", {kX},
                    trees("target", {0, 0, 0, 0}, {1, 2, 4, 8},
                          {int_attribute("n_targets", 1), string_attribute("aggregate_function", function)}));
  };
  expect_tensor(run(joined("SUM"), {kX}), f32({3, 1}, {5, 10, 9}));
  expect_tensor(run(joined("AVERAGE"), {kX}), f32({3, 1}, {2.5, 5, 4.5}));
  expect_tensor(run(joined("MIN"), {kX}), f32({3, 1}, {1, 2, 1}));
  expect_tensor(run(joined("MAX"), {kX}), f32({3, 1}, {4, 8, 8}));
  refuse(
      joined("MEDIAN"),
      R"(node "n": TreeEnsembleRegressor: aggregate_function is "MEDIAN", but must be one of SUM, AVERAGE, )"
      "MIN, MAX");
}

TEST(OnnxTrees, SendMissingValuesWhereTheyAreTold) {
  const Tensor x = f32({1, 2}, {std::nan(""), std::nan("")});
  const Bytes one = int_attribute("n_targets", 1);
  const auto sums = [&](const Messages& more) {
    return run_ml("TreeEnsembleRegressor", {x}, trees("target", {0, 0, 0, 0}, {1, 2, 4, 8}, more))[0];
  };
  expect_tensor(sums({one}), f32({1, 1}, {10}));
  expect_tensor(sums({one, ints_attribute("nodes_missing_value_tracks_true", {1, 0, 0, 0, 0, 0})}),
                f32({1, 1}, {9}));
}

TEST(OnnxTrees, ClassifierChoosesTheGreatestScore) {
  const Data result =
      run_ml("TreeEnsembleClassifier", {kX}, trees("class", {0, 1, 0, 1}, {1, 2, 4, 8}, {kLabels}), 2);
  expect_tensor(result[0], i64({3}, {5, 6, 6}));
  expect_tensor(result[1], f32({3, 2}, {5, 0, 0, 10, 1, 8}));
}

TEST(OnnxTrees, WeightsForOneOfTwoClassesDecide) {
  const Data odds = run_ml("TreeEnsembleClassifier", {kX},
                           trees("class", {0, 0, 0, 0}, {1, -2, 0.5, -0.25},
                                 {kLabels, string_attribute("post_transform", "LOGISTIC")}),
                           2);
  expect_tensor(odds[0], i64({3}, {6, 5, 6}));
  expect_near(odds[1],
              f32({3, 2}, {sigmoid(-1.5), sigmoid(1.5), sigmoid(2.25), sigmoid(-2.25), sigmoid(-0.75),
                           sigmoid(0.75)}),
              1e-6);
  const Data probabilities = run_ml("TreeEnsembleClassifier", {kX},
                                    trees("class", {0, 0, 0, 0}, {0.25, 0.125, 0.5, 0.25}, {kLabels}), 2);
  expect_tensor(probabilities[0], i64({3}, {6, 5, 5}));
  expect_tensor(probabilities[1], f32({3, 2}, {0.25, 0.75, 0.625, 0.375, 0.5, 0.5}));
}

TEST(OnnxTrees, RefuseListsThatMakeNoTrees) {
  const auto refuse_with = [](size_t at, const Bytes& attribute, const std::string& message) {
    Messages attributes = trees("target", {0, 0, 0, 0}, {1, 2, 4, 8}, {int_attribute("n_targets", 1)});
    attributes[at] = attribute;
    refuse_ml("TreeEnsembleRegressor", {kX}, attributes, "TreeEnsembleRegressor: " + message);
  };
  refuse_with(1, ints_attribute("nodes_nodeids", {0, 1, 1, 0, 1, 2}), "node 1 of tree 0 is there twice");
  refuse_with(3, floats_attribute("nodes_values", {1}), "the lists that describe nodes differ in length");
  refuse_with(4, strings_attribute("nodes_modes", {"BRANCH", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}),
              R"(a node has mode "BRANCH", which has no meaning)");
  refuse_with(5, ints_attribute("nodes_truenodeids", {7, 0, 0, 1, 0, 0}), "there is no node 7 in tree 0");
  refuse_with(5, ints_attribute("nodes_truenodeids", {1}), "the lists that describe nodes differ in length");
  refuse_with(8, ints_attribute("target_nodeids", {0, 2, 1, 2}),
              "node 0 of tree 0 has a weight, but is no leaf");
  refuse_with(10, floats_attribute("target_weights", {1}), "the lists that describe leaves differ in length");
}

// The same trees, as opset 5 writes them.
Messages ensemble(const Messages& more) {
  Messages attributes = {
      ints_attribute("tree_roots", {0, 1}),
      ints_attribute("nodes_featureids", {0, 1}),
      tensor_attribute("nodes_modes", encode::tensor<uint8_t>("", {2}, {0, 3})),
      tensor_attribute("nodes_splits", encode::tensor<float>("", {2}, {1, 1})),
      ints_attribute("nodes_truenodeids", {0, 2}),
      ints_attribute("nodes_trueleafs", {1, 1}),
      ints_attribute("nodes_falsenodeids", {1, 3}),
      ints_attribute("nodes_falseleafs", {1, 1}),
      ints_attribute("leaf_targetids", {0, 1, 0, 1}),
      tensor_attribute("leaf_weights", encode::tensor<float>("", {4}, {1, 2, 4, 8})),
      int_attribute("n_targets", 2),
  };
  attributes.insert(attributes.end(), more.begin(), more.end());
  return attributes;
}

TEST(OnnxTrees, OfOpset5NumberNodesAndLeavesApart) {
  expect_tensor(run_ml("TreeEnsemble", {kX}, ensemble({}), 1, 5)[0], f32({3, 2}, {5, 0, 0, 10, 1, 8}));
  expect_tensor(run_ml("TreeEnsemble", {kX}, ensemble({int_attribute("aggregate_function", 0)}), 1, 5)[0],
                f32({3, 2}, {2.5, 0, 0, 5, 0.5, 4}));
  expect_near(run_ml("TreeEnsemble", {kX}, ensemble({int_attribute("post_transform", 2)}), 1, 5)[0],
              f32({3, 2}, {sigmoid(5), 0.5, 0.5, sigmoid(10), sigmoid(1), sigmoid(8)}), 1e-6);
  refuse_ml("TreeEnsemble", {kX}, ensemble({int_attribute("aggregate_function", 4)}),
            "TreeEnsemble: aggregate_function is 4, which has no meaning");
  Messages attributes = ensemble({});
  attributes[5] = ints_attribute("nodes_trueleafs", {1});
  refuse_ml("TreeEnsemble", {kX}, attributes,
            "TreeEnsemble: nodes_truenodeids and nodes_trueleafs differ in length");
  attributes[5] = ints_attribute("nodes_trueleafs", {0, 1});
  attributes[4] = ints_attribute("nodes_truenodeids", {-1, 2});
  refuse_ml("TreeEnsemble", {kX}, attributes, "TreeEnsemble: nodes_truenodeids holds -1");
}

TEST(OnnxTrees, OfOpset5TestForMembership) {
  Messages attributes = ensemble(
      {tensor_attribute("membership_values", encode::tensor<float>("", {3}, {0, 3, std::nanf("")}))});
  attributes[2] = tensor_attribute("nodes_modes", encode::tensor<uint8_t>("", {2}, {6, 3}));
  expect_tensor(run_ml("TreeEnsemble", {kX}, attributes, 1, 5)[0], f32({3, 2}, {4, 2, 1, 8, 1, 8}));
}

// --- what we do not have

TEST(OnnxMl, NamesOpsThatAreNotSupported) {
  for (const std::string op : {"CastMap", "DictVectorizer", "ZipMap"})
    refuse<UnsupportedError>(
        ml_model(op, {kX}, {}),
        fmt::format("1 of its ops is not supported\n  ai.onnx.ml.{}: 1 node, \"n\"\n  hint: an op that is "
                    "not known is "
                    "kept as it is where the file declares, as value_info, which tensors its outputs are",
                    op));
}

}  // namespace
}  // namespace tenon::onnx
