// The gradients of whole models against what PyTorch computed for them.
#include <gtest/gtest.h>

#include "autodiff/gradient.h"
#include "corpora.h"
#include "frontends/read_model.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ops/registry.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// max |actual - expected| ≤ tolerance · max |expected|; where that is 0 but for rounding, ≤ tolerance.
void expect_agrees(const Tensor& actual, const Tensor& expected, double tolerance) {
  ASSERT_EQ(to_string(type_of(actual)), to_string(type_of(expected)));
  const std::vector<double> a = widen<double>(actual), b = widen<double>(expected);
  double difference = 0, greatest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = std::max(difference, std::fabs(a[i] - b[i]));
    greatest = std::max(greatest, std::fabs(b[i]));
    ASSERT_EQ(std::isnan(a[i]), std::isnan(b[i]));
  }
  EXPECT_LE(difference, greatest < 1e-3 ? tolerance : tolerance * greatest);
}

// Models whose gradients in the data are not those of the model: PyTorch's scan gave none through the values
// it carries.
const std::set<std::string> kOtherwise = {"scan"};

// Σ seed · output is of second degree in the inputs of such a model, so that differences tell its slope.
void expect_slopes(const Graph& graph, const Data& inputs, const Tensor& seed, const Tensor& gradient) {
  const auto loss = [&](const std::vector<double>& x) {
    const Tensor input = narrow<double>(DType::F32, gradient.extents(), x);
    const std::vector<double> y = widen<double>(evaluate(graph, {input}).front().tensor()),
                              w = widen<double>(seed);
    return std::inner_product(y.begin(), y.end(), w.begin(), 0.0);
  };
  const std::vector<double> x = widen<double>(inputs.front().tensor()), slopes = widen<double>(gradient);
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<double> more = x, less = x;
    more[i] += 0.5;
    less[i] -= 0.5;
    EXPECT_NEAR(slopes[i], loss(more) - loss(less), 1e-4);
  }
}

// Which of the data's gradients, grad_input_K and grad_param_NAME, the model gives: all of them.
void check_model(const fs::path& model, const fs::path& data) {
  try {
    const std::unique_ptr<Graph> graph = read_model(model);
    const std::unique_ptr<Graph> gradients = differentiate(*graph);
    EXPECT_EQ(lint(*gradients), std::vector<std::string>());
    const NamedTensors tensors = read_npz(data);
    Data inputs;
    for (Value input : graph->inputs())
      inputs.emplace_back(*find_array(tensors, fmt::format("input_{}", input.index())));
    inputs.emplace_back(*find_array(tensors, "grad_seed"));
    int checked = 0;
    const Data outputs = evaluate(*gradients, inputs);
    if (kOtherwise.contains(model.stem().string()))
      return expect_slopes(*graph, inputs, *find_array(tensors, "grad_seed"), outputs.back().tensor());
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = gradients->output_names()[i];
      std::string key = "grad_param_" + name.substr(std::min<size_t>(name.size(), 5));
      for (Value input : graph->inputs())
        if (name == "grad_" + input.name())
          key = fmt::format("grad_input_{}", input.index());
      SCOPED_TRACE(name);
      if (const Tensor* expected = name.starts_with("grad_") ? find_array(tensors, key) : nullptr) {
        expect_agrees(outputs[i].tensor(), *expected, 1e-4);
        ++checked;
      }
    }
    for (const auto& [name, tensor] : tensors)
      checked -= name.starts_with("grad_input_") || name.starts_with("grad_param_");
    EXPECT_EQ(checked, 0) << "some gradients were not there to compare";
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(ModelGradients, OfThoseThatComeWithTheTestsAreThoseOfPyTorch) {
  register_ops();
  for_each_model(models_of_tests(), check_model);
}

TEST(ModelGradients, OfTheCoursesAreThoseOfPyTorch) {
  if (!corpus("seeds"))
    GTEST_SKIP() << "no corpora at hand";
  register_ops();
  for_each_model(*corpus("seeds"), check_model);
}

}  // namespace
}  // namespace tenon
