// Models that are written as ONNX and read again compute the same.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/temporary_folder.h"
#include "corpora.h"
#include "frontends/builtin/builtin.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/write/write.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ops/registry.h"
#include "verify/compare.h"
#include "verify/sample_inputs.h"

namespace tenon {
namespace {

// Within a rounding step: ONNX may say in two ops what we say in one.
void expect_same_after_writing(const Graph& graph, const onnx::WriteOptions& options) {
  const TemporaryFolder folder;
  write_onnx(graph, folder / "m.onnx", options);
  const std::unique_ptr<Graph> back = onnx::read_onnx(folder / "m.onnx");
  EXPECT_EQ(lint(*back), std::vector<std::string>());
  EXPECT_EQ(back->output_names(), graph.output_names());
  const Data inputs = sample_inputs(graph);
  const Data expected = evaluate(graph, inputs), actual = evaluate(*back, inputs);
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(first_mismatch(actual[i], expected[i], 1e-6, 1e-7), "");
}

void expect_same_in_old_and_new_opsets(const Graph& graph) {
  expect_same_after_writing(graph, {});
  expect_same_after_writing(graph, {.opset = 28});
  expect_same_after_writing(graph, {.most_inside = 0});
}

TEST(WriteOnnx, KeepsWhatBuiltInModelsCompute) {
  register_ops();
  for (const builtin::Model& model : builtin::all_models()) {
    SCOPED_TRACE(model.name);
    expect_same_in_old_and_new_opsets(*model.make());
  }
}

TEST(WriteOnnx, KeepsWhatExportedModelsCompute) {
  register_ops();
  int64_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(models_of_tests())) {
    if (entry.path().extension() != ".onnx")
      continue;
    SCOPED_TRACE(entry.path().string());
    const std::unique_ptr<Graph> graph = onnx::read_onnx(entry.path());
    if (std::ranges::any_of(graph->nodes(), [](const Node* node) { return node->is("custom"); }))
      continue;  // which nobody here can compute
    expect_same_in_old_and_new_opsets(*graph);
    ++count;
  }
  EXPECT_GT(count, 5);
}

}  // namespace
}  // namespace tenon
