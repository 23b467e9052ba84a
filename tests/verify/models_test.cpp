// Whole models against what PyTorch computed for them: a few small ones that come with the tests, and, where
// a folder of corpora is at hand (TENON_CORPORA, or shared/corpora beside the checkout), all of those. The
// same again, optimised.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "frontends/onnx/import.h"
#include "ir/equal.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ir/parse.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "tensor/npy.h"
#include "verify/compare.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::optional<fs::path> corpora() {
  if (const char* given = std::getenv("TENON_CORPORA"))
    return fs::path(given);
  const fs::path beside =
      fs::path(TENON_TEST_DATA).parent_path().parent_path().parent_path() / "shared" / "corpora";
  return fs::exists(beside) ? std::optional(beside) : std::nullopt;
}

const Tensor* find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors)
    if (key == name)
      return &tensor;
  return nullptr;
}

// Optimised, the model computes the same: the same bits under strict numerics. Optimising again does nothing.
void check_optimised(const Graph& graph, const Data& inputs, const Data& outputs, NumericsBudget numerics) {
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(numerics), again(numerics);
  optimize(*optimised, journal, {.lint_everything = true});
  const Data actual = evaluate(*optimised, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const double tolerance = numerics == NumericsBudget::Strict ? 0 : 1e-5;
    const Comparison comparison = compare(actual[i].tensor(), outputs[i].tensor(), tolerance);
    EXPECT_TRUE(comparison.agree) << comparison.detail;
  }
  optimize(*optimised, again);
  EXPECT_TRUE(again.applications().empty()) << again.applications().front().rule;
}

// The model lints, survives its text form, and gives the data's output_K for its input_K.
void check_model(const fs::path& model, const fs::path& data, double tolerance) {
  SCOPED_TRACE(model.filename().string());
  try {
    const std::unique_ptr<Graph> graph = onnx::read_onnx(model);
    EXPECT_EQ(lint(*graph), std::vector<std::string>());
    const LiteralTable literals = large_literals(*graph);
    EXPECT_EQ(difference(*parse(print(*graph), {.literals = &literals}), *graph), "");
    const NamedTensors tensors = read_npz(data);
    Data inputs;
    for (Value input : graph->inputs()) {
      const Tensor* tensor = find(tensors, fmt::format("input_{}", input.index()));
      ASSERT_NE(tensor, nullptr) << "no data for input " << input.name();
      inputs.emplace_back(*tensor);
    }
    const Data outputs = evaluate(*graph, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (const Tensor* expected = find(tensors, fmt::format("output_{}", i))) {
        const Comparison comparison = compare(outputs[i].tensor(), *expected, tolerance);
        EXPECT_TRUE(comparison.agree) << comparison.detail;
        EXPECT_FALSE(comparison.proves_nothing);
      }
    check_optimised(*graph, inputs, outputs, NumericsBudget::Default);
    check_optimised(*graph, inputs, outputs, NumericsBudget::Strict);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

// Every .onnx of a folder with the .npz of its name up to the first dot.
void check_folder(const fs::path& folder, double tolerance) {
  register_ops();
  int models = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".onnx")
      continue;
    const std::string name = entry.path().filename().string();
    check_model(entry.path(), folder / (name.substr(0, name.find('.')) + ".npz"), tolerance);
    ++models;
  }
  EXPECT_GT(models, 0) << "no models in " << folder;
}

TEST(Models, ThatComeWithTheTestsAgreeWithPyTorch) {
  check_folder(fs::path(TENON_TEST_DATA) / "models", 1e-5);
}

TEST(Models, OfTheCoursesAgreeWithPyTorch) {
  if (!corpora())
    GTEST_SKIP() << "no corpora at hand";
  check_folder(*corpora() / "seeds", 1e-5);
}

TEST(Models, OfFourExportersAgreeWithPyTorch) {
  if (!corpora())
    GTEST_SKIP() << "no corpora at hand";
  check_folder(*corpora() / "variants", 1e-4);
}

}  // namespace
}  // namespace tenon
