// Whole models, optimised and compiled: what the reference evaluator computes for them as they are, and the
// same bits however many threads compute.
#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/compile.h"
#include "corpora.h"
#include "frontends/read_model.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "verify/compare.h"

namespace tenon {

using compiler::compile;
using runtime::Executor;

namespace {

namespace fs = std::filesystem;

Data inputs_from(const Graph& graph, const fs::path& data) {
  const NamedTensors tensors = read_npz(data);
  Data inputs;
  for (Value input : graph.inputs()) {
    const Tensor* tensor = find_array(tensors, fmt::format("input_{}", input.index()));
    if (tensor == nullptr)
      throw user_error("no data for input {}", input.name());
    inputs.emplace_back(*tensor);
  }
  return inputs;
}

void check_compiled(const Graph& graph, const Data& inputs, NumericsBudget numerics, double tolerance) {
  const std::unique_ptr<Graph> optimised = graph.clone();
  Journal journal(numerics);
  optimize(*optimised, journal);
  const std::unique_ptr<Executor> program = compile(*optimised, here());
  const Data expected = evaluate(graph, inputs), actual = program->run(inputs, {.threads = 1});
  for (size_t i = 0; i < expected.size(); ++i) {
    const Comparison comparison = compare(actual[i].tensor(), expected[i].tensor(), tolerance);
    EXPECT_TRUE(comparison.agree) << comparison.detail;
    EXPECT_FALSE(comparison.proves_nothing);
  }
  for (int threads : {2, 3}) {
    const Data again = program->run(inputs, {.threads = threads});
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_EQ(first_other_bits(again[i], actual[i]), "") << threads << " threads";
  }
}

void check_folder(const fs::path& folder) {
  register_ops();
  for_each_model(folder, [](const fs::path& model, const fs::path& data) {
    try {
      const std::unique_ptr<Graph> graph = read_model(model);
      const Data inputs = inputs_from(*graph, data);
      check_compiled(*graph, inputs, NumericsBudget::Default, 1e-4);
      check_compiled(*graph, inputs, NumericsBudget::Strict, 1e-5);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

TEST(CompiledModels, ThatComeWithTheTestsAgreeWithTheReference) { check_folder(models_of_tests()); }

TEST(CompiledModels, OfTheCoursesAgreeWithTheReference) {
  if (!corpus("seeds"))
    GTEST_SKIP() << "no corpora at hand";
  check_folder(*corpus("seeds"));
}

TEST(CompiledModels, OfFourExportersAgreeWithTheReference) {
  if (!corpus("variants"))
    GTEST_SKIP() << "no corpora at hand";
  check_folder(*corpus("variants"));
}

}  // namespace
}  // namespace tenon
