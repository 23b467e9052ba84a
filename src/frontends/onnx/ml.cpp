// ml.cpp — ONNX's classical models and what prepares features for them, but for trees.
#include "ops/ml.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/scores.h"
#include "frontends/onnx/vectors.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/sort.h"
#include "ops/svm.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

Value as_f32(Value x) { return in_dtype(x, DType::F32); }
Value float_constant(const NodeView& n, const std::vector<double>& values) {
  return constant(n.graph(), float_vector(values));
}

// --- labels ---

// One of the attributes PREFIX_floats, PREFIX_int64s, PREFIX_strings, PREFIX_tensor.
Tensor read_list(const NodeView& n, const std::string& prefix) {
  if (n.has(prefix + "_tensor"))
    return n.literal(prefix + "_tensor").tensor();
  if (n.has(prefix + "_floats"))
    return float_vector(n.reals(prefix + "_floats"));
  if (n.has(prefix + "_int64s"))
    return Tensor::of(n.integers(prefix + "_int64s"));
  return string_vector(n.texts(prefix + "_strings"));
}

// What LabelEncoder gives for a label that is no key, by the dtype of the values.
Tensor read_default(const NodeView& n, DType dtype) {
  if (n.has("default_tensor"))
    return n.literal("default_tensor").tensor();
  if (dtype == DType::String)
    return string_vector({n.text("default_string", "_Unused")});
  if (is_float(dtype))
    return filled(dtype, {1}, n.real("default_float", -0.0));
  return narrow<int64_t>(dtype, {1}, std::vector<int64_t>{n.integer("default_int64", -1)});
}

// Strings to integers or integers to strings, whichever x is not.
Value map_either_way(const NodeView& n, const Tensor& integers, const Tensor& strings) {
  const Value x = n.in(0);
  if (x.dtype() == DType::String)
    return map_labels(x, strings, integers, read_default(n, DType::I64));
  return map_labels(x, integers, strings, read_default(n, DType::String));
}

Tensor count_up(int64_t count) { return Literal::iota(DType::I64, 0, 1, count).tensor(); }

// Before opset 2 the integers are the positions of the strings.
std::vector<Value> convert_label_encoder(const NodeView& n) {
  if (n.opset() < 2) {
    const Tensor strings = string_vector(n.texts("classes_strings"));
    return {map_either_way(n, count_up(strings.count()), strings)};
  }
  const Tensor values = read_list(n, "values");
  return {map_labels(n.in(0), read_list(n, "keys"), values, read_default(n, values.dtype()))};
}

std::vector<Value> convert_category_mapper(const NodeView& n) {
  return {map_either_way(n, Tensor::of(n.integers("cats_int64s")), string_vector(n.texts("cats_strings")))};
}

std::vector<Value> convert_one_hot_encoder(const NodeView& n) {
  const Tensor categories = class_labels(n, "cats_int64s", "cats_strings");
  Value x = n.in(0);
  if (x.dtype() != DType::String)
    x = in_dtype(x, DType::I64);
  const int64_t count = categories.count();
  const Tensor positions = count_up(count);
  // What is no category gets the position after the last, where no vector is on.
  Value position = map_labels(x, categories, positions, Tensor::scalar(count));
  if (!n.flag("zeros", true))  // such a position is then an error
    position = gather(constant(n.graph(), positions), position, 0);
  return {one_hot(position, scalar(n.graph(), DType::I64, static_cast<double>(count)),
                  float_constant(n, {0, 1}), -1)};
}

// --- features ---

std::vector<Value> convert_array_feature_extractor(const NodeView& n) {
  const Value x = n.in(0), y = gather(x, reshape(n.in(1), {-1}), -1);
  return {n.rank_of(x) == 1 ? unsqueeze(y, {0}) : y};
}

// A whole number is above a threshold when it is above the whole number below.
std::vector<Value> convert_binarizer(const NodeView& n) {
  const Value x = n.in(0);
  const double threshold = n.real("threshold", 0);
  const Value bound = scalar(n.graph(), x.dtype(), is_float(x.dtype()) ? threshold : std::floor(threshold));
  return {cast(greater(x, bound), x.dtype())};
}

std::vector<Value> convert_scaler(const NodeView& n) {
  Value y = as_f32(n.in(0));
  if (n.has("offset"))
    y = y - float_constant(n, n.reals("offset"));
  if (n.has("scale"))
    y = y * float_constant(n, n.reals("scale"));
  return {y};
}

// A divisor of zero leaves x as it is.
std::vector<Value> convert_normalizer(const NodeView& n) {
  const Value x = as_f32(n.in(0));
  const std::string norm = n.text("norm", "MAX");
  Value divisor;
  if (norm == "MAX")
    divisor = reduce_max(x, {-1}, Keep::Dims);
  else if (norm == "L1")
    divisor = reduce_sum(tenon::abs(x), {-1}, Keep::Dims);
  else if (norm == "L2")
    divisor = tenon::sqrt(reduce_sum(x * x, {-1}, Keep::Dims));
  else
    throw user_error("Normalizer: norm is \"{}\", but must be MAX, L1 or L2", norm);
  const auto number = [&](double value) { return scalar(n.graph(), DType::F32, value); };
  return {x / where(equal(divisor, number(0)), number(1), divisor)};
}

std::vector<Value> convert_imputer(const NodeView& n) {
  const Value x = n.in(0);
  const bool real = is_float(x.dtype());
  const std::vector<double> values = real ? n.reals("imputed_value_floats") : std::vector<double>();
  const Value replacement = real
                                ? constant(n.graph(), narrow<double>(x.dtype(), {std::ssize(values)}, values))
                                : cast(int_vector(n.graph(), n.integers("imputed_value_int64s")), x.dtype());
  const double replaced = n.real("replaced_value_float", 0);
  if (real && std::isnan(replaced))
    return {where(is_nan(x), replacement, x)};
  const Value sought =
      real ? scalar(n.graph(), x.dtype(), replaced)
           : constant(n.graph(), narrow<int64_t>(x.dtype(), {},
                                                 std::vector<int64_t>{n.integer("replaced_value_int64", 0)}));
  return {where(equal(x, sought), replacement, x)};
}

std::vector<Value> convert_feature_vectorizer(const NodeView& n) {
  const std::vector<int64_t> sizes = n.integers("inputdimensions");
  std::vector<Value> parts = n.ins();
  if (sizes.size() != parts.size() || parts.empty())
    throw user_error("FeatureVectorizer: it has {} inputs, but {} inputdimensions", parts.size(),
                     sizes.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t rank = n.rank_of(parts[i]);
    if (rank != 1 && rank != 2)
      throw user_error("FeatureVectorizer: input {} is {}, but must be [features] or [batch, features]", i,
                       parts[i].type());
    if (rank == 1)
      parts[i] = unsqueeze(parts[i], {0});
    if (parts[i].dim(-1).constant().value_or(sizes[i]) != sizes[i])
      throw unsupported("FeatureVectorizer: input {} is {}, but inputdimensions say {}", i, parts[i].type(),
                        sizes[i]);
    parts[i] = as_f32(parts[i]);
  }
  return {concat(parts, 1)};
}

// --- linear models and support vectors ---

// x · Wᵀ + intercepts, where W has `rows` rows.
Value apply_coefficients(const NodeView& n, int64_t rows) {
  const std::vector<double> weights = n.reals("coefficients");
  if (rows <= 0 || std::ssize(weights) % rows != 0)
    throw user_error("{}: {} coefficients do not divide into {} rows", n.op_type(), weights.size(), rows);
  const Tensor matrix = float_vector(weights).reshaped({rows, std::ssize(weights) / rows});
  const Value y = matmul(as_f32(n.in(0)), constant(n.graph(), matrix), {.b = true});
  return n.has("intercepts") ? y + float_constant(n, n.reals("intercepts")) : y;
}

std::vector<Value> convert_linear_regressor(const NodeView& n) {
  return {transform_scores(n, apply_coefficients(n, n.integer("targets", 1)))};
}

// With two labels, one row of coefficients may do: the score of the other class is its negative.
std::vector<Value> convert_linear_classifier(const NodeView& n) {
  const Tensor labels = class_labels(n, "classlabels_ints", "classlabels_strings");
  const int64_t rows = n.has("intercepts") ? std::ssize(n.reals("intercepts")) : labels.count();
  Value scores = apply_coefficients(n, rows);
  if (rows == 1 && labels.count() == 2)
    scores = scores * float_constant(n, {-1, 1});
  else if (rows != labels.count())
    throw unsupported("LinearClassifier: {} rows of coefficients for {} labels", rows, labels.count());
  scores = transform_scores(n, scores);
  return {gather(constant(n.graph(), labels), arg_max(scores, 1), 0), scores};
}

std::string kernel_of(const NodeView& n) {
  return n.translate<std::string>(
      "kernel_type", "LINEAR",
      {{"LINEAR", "linear"}, {"POLY", "poly"}, {"RBF", "rbf"}, {"SIGMOID", "sigmoid"}});
}

std::vector<double> reals_or_none(const NodeView& n, std::string_view name) {
  return n.has(name) ? n.reals(name) : std::vector<double>();
}

std::vector<Value> convert_svm_classifier(const NodeView& n) {
  SvmClassifier classifier = {.labels = class_labels(n, "classlabels_ints", "classlabels_strings"),
                              .kernel = kernel_of(n),
                              .kernel_parameters = reals_or_none(n, "kernel_params"),
                              .vectors = reals_or_none(n, "support_vectors"),
                              .counts = n.integers("vectors_per_class", {}),
                              .coefficients = n.reals("coefficients"),
                              .rho = n.reals("rho"),
                              .prob_a = reals_or_none(n, "prob_a"),
                              .prob_b = reals_or_none(n, "prob_b"),
                              .transform = n.translate<std::string>("post_transform", "NONE",
                                                                    {{"NONE", "none"},
                                                                     {"LOGISTIC", "logistic"},
                                                                     {"SOFTMAX", "softmax"},
                                                                     {"SOFTMAX_ZERO", "softmax_zero"},
                                                                     {"PROBIT", "probit"}})};
  // Linear scores do not become probabilities.
  if (std::ranges::all_of(classifier.counts, [](int64_t count) { return count == 0; }))
    classifier.prob_a = classifier.prob_b = {};
  return svm_classifier(n.in(0), classifier);
}

std::vector<Value> convert_svm_regressor(const NodeView& n) {
  const int64_t count = n.integer("n_supports", 0);
  SvmRegressor regressor = {.kernel = kernel_of(n),
                            .kernel_parameters = reals_or_none(n, "kernel_params"),
                            .vectors = {},
                            .coefficients = n.reals("coefficients"),
                            .rho = 0,
                            .one_class = n.flag("one_class", false)};
  if (count > 0) {
    regressor.vectors = n.reals("support_vectors");
    if (std::ssize(regressor.coefficients) != count || std::ssize(regressor.vectors) % count != 0)
      throw user_error("SVMRegressor: {} coefficients and {} numbers for {} support vectors",
                       regressor.coefficients.size(), regressor.vectors.size(), count);
  }
  const std::vector<double> rho = n.reals("rho");
  if (rho.empty())
    throw user_error("SVMRegressor: rho is empty");
  regressor.rho = rho.front();
  const Value y = svm_regressor(as_f32(n.in(0)), regressor);
  return {regressor.one_class ? y : transform_scores(n, y)};
}

}  // namespace

const Conversions& ml_conversions() {
  static const Conversions conversions = {
      {"ArrayFeatureExtractor", convert_array_feature_extractor, "ai.onnx.ml"},
      {"Binarizer", convert_binarizer, "ai.onnx.ml"},
      {"CategoryMapper", convert_category_mapper, "ai.onnx.ml"},
      {"FeatureVectorizer", convert_feature_vectorizer, "ai.onnx.ml"},
      {"Imputer", convert_imputer, "ai.onnx.ml"},
      {"LabelEncoder", convert_label_encoder, "ai.onnx.ml"},
      {"LinearClassifier", convert_linear_classifier, "ai.onnx.ml"},
      {"LinearRegressor", convert_linear_regressor, "ai.onnx.ml"},
      {"Normalizer", convert_normalizer, "ai.onnx.ml"},
      {"OneHotEncoder", convert_one_hot_encoder, "ai.onnx.ml"},
      {"SVMClassifier", convert_svm_classifier, "ai.onnx.ml"},
      {"SVMRegressor", convert_svm_regressor, "ai.onnx.ml"},
      {"Scaler", convert_scaler, "ai.onnx.ml"},
  };
  return conversions;
}

}  // namespace tenon::onnx
