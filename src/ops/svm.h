// svm.h — support vector machines: one for a number, or one for each pair of classes.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& svm_ops();

// As the op svm_classifier takes them; see its attributes.
struct SvmClassifier {
  Literal labels;
  std::string kernel = "linear";
  std::vector<double> kernel_parameters;
  std::vector<double> vectors;
  std::vector<int64_t> counts;
  std::vector<double> coefficients, rho, prob_a, prob_b;
  std::string transform = "none";
};

// As the op svm_regressor takes them.
struct SvmRegressor {
  std::string kernel = "linear";
  std::vector<double> kernel_parameters, vectors, coefficients;
  double rho = 0;
  bool one_class = false;
};
Value svm_regressor(Value x, const SvmRegressor& regressor);

// The labels, and the scores.
std::vector<Value> svm_classifier(Value x, const SvmClassifier& classifier);

}  // namespace tenon
