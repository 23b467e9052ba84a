// Whole models against what PyTorch computed for them, and the same again, optimised.
#include <gtest/gtest.h>

#include "corpora.h"
#include "frontends/read_model.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "verify/compare.h"
#include "verify/rewrite_checks.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// Optimised, the model computes the same: the same bits under strict numerics. Optimising again does nothing.
void check_optimised(const Graph& graph, const Data& inputs, const Data& outputs, NumericsBudget numerics) {
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(numerics), again(numerics);
  optimize(*optimised, journal, {.lint_everything = true});
  const Data actual = evaluate(*optimised, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (numerics == NumericsBudget::Strict) {
      EXPECT_EQ(first_other_bits(actual[i], outputs[i]), "");
      continue;
    }
    const Comparison comparison = compare(actual[i].tensor(), outputs[i].tensor(), 1e-5);
    EXPECT_TRUE(comparison.agree) << comparison.detail;
  }
  optimize(*optimised, again);
  EXPECT_TRUE(again.applications().empty()) << again.applications().front().rule;
}

// Each rewrite by itself gives what its class promises.
void check_rewrites_of(const Graph& graph, const Data& inputs) {
  const std::unique_ptr<Graph> copy = graph.clone();
  Journal journal(NumericsBudget::Fast);
  for (const auto& [application, numbers] :
       check_rewrites(*copy, record_values(*copy, inputs), journal, [&] { optimize(*copy, journal); }))
    EXPECT_NE(numbers.verdict, Verdict::Failed)
        << application.rule << " of " << application.pass << ": " << numbers.detail;
}

// The model lints, survives its text form, and gives the data's output_K for its input_K.
void check_model(const fs::path& model, const fs::path& data, double tolerance) {
  try {
    const std::unique_ptr<Graph> graph = read_model(model);
    EXPECT_EQ(lint(*graph), std::vector<std::string>());
    const LiteralTable literals = large_literals(*graph);
    EXPECT_EQ(difference(*parse(print(*graph), {.literals = &literals}), *graph), "");
    const NamedTensors tensors = read_npz(data);
    Data inputs;
    for (Value input : graph->inputs()) {
      const Tensor* tensor = find_array(tensors, fmt::format("input_{}", input.index()));
      ASSERT_NE(tensor, nullptr) << "no data for input " << input.name();
      inputs.emplace_back(*tensor);
    }
    const Data outputs = evaluate(*graph, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const Tensor* expected = find_array(tensors, fmt::format("output_{}", i))) {
        const Comparison comparison = compare(outputs[i].tensor(), *expected, tolerance);
        EXPECT_TRUE(comparison.agree) << comparison.detail;
        EXPECT_FALSE(comparison.proves_nothing);
      }
    check_optimised(*graph, inputs, outputs, NumericsBudget::Default);
    check_optimised(*graph, inputs, outputs, NumericsBudget::Strict);
    check_rewrites_of(*graph, inputs);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

void check_folder(const fs::path& folder, double tolerance) {
  register_ops();
  for_each_model(folder,
                 [&](const fs::path& model, const fs::path& data) { check_model(model, data, tolerance); });
}

TEST(Models, ThatComeWithTheTestsAgreeWithPyTorch) { check_folder(models_of_tests(), 1e-5); }

TEST(Models, OfTheCoursesAgreeWithPyTorch) {
  if (!corpus("seeds"))
    GTEST_SKIP() << "no corpora at hand";
  check_folder(*corpus("seeds"), 1e-5);
}

TEST(Models, OfFourExportersAgreeWithPyTorch) {
  if (!corpus("variants"))
    GTEST_SKIP() << "no corpora at hand";
  check_folder(*corpus("variants"), 1e-4);
}

}  // namespace
}  // namespace tenon
