// The same module through both front ends: what each imports, and whether optimising makes one graph of the
// two.
#include <gtest/gtest.h>

#include "corpora.h"
#include "frontends/read_model.h"
#include "ir/equal.h"
#include "ops/data.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

int64_t count_steps(const Graph& graph) {
  int64_t count = 0;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      count += literal_of(*node) == nullptr;
  });
  return count;
}

// Constants may stand anywhere before their first use: directly before it, so that two graphs can be
// compared.
void move_constants(Graph& graph) {
  for (Node* node : graph.nodes())
    if (literal_of(*node) != nullptr && node->result().use_count() > 0)
      graph.move_before(node, node->result().users().front());
}

std::unique_ptr<Graph> optimised(const Graph& graph) {
  std::unique_ptr<Graph> copy = graph.clone();
  Journal journal;
  optimize(*copy, journal);
  for_each_graph(*copy, move_constants);
  return copy;
}

// ONNX holds attributes in 32 bits, PyTorch in 64: an epsilon that stays an attribute is not quite the same
// number.
const std::set<std::string> kOtherEpsilon = {"conv_multi_use", "linear_layernorm"};

// Prints a row for each module that is there both as .pt2 and as .onnx; nodes are counted without constants.
void compare_folder(const fs::path& folder) {
  register_ops();
  std::set<fs::path> models;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".pt2" && fs::exists(fs::path(entry.path()).replace_extension(".onnx")))
      models.insert(entry.path());
  EXPECT_FALSE(models.empty()) << "no models in " << folder;
  std::string table = fmt::format("{:<20} {:>5} {:>5}  {:<13} {:>9}  {}\n", "module", ".pt2", ".onnx",
                                  "more explicit", "optimised", "structural hash");
  for (const fs::path& model : models) {
    SCOPED_TRACE(model.stem().string());
    const auto torch = read_model(model), onnx = read_model(fs::path(model).replace_extension(".onnx"));
    const int64_t ours = count_steps(*torch), theirs = count_steps(*onnx);
    const auto left = optimised(*torch), right = optimised(*onnx);
    const std::string what = difference(*left, *right);
    const bool equal = what.empty() && structural_hash(*left) == structural_hash(*right);
    if (kOtherEpsilon.contains(model.stem().string()))
      EXPECT_TRUE(what.ends_with("attribute epsilon differs")) << what;
    else
      EXPECT_TRUE(equal) << what;
    table += fmt::format("{:<20} {:>5} {:>5}  {:<13} {:>9}  {}\n", model.stem().string(), ours, theirs,
                         ours == theirs  ? "neither"
                         : ours > theirs ? ".pt2"
                                         : ".onnx",
                         count_steps(*left),
                         equal ? "equal" : "differs in an epsilon, of which ONNX keeps 32 bits");
  }
  std::fputs(table.c_str(), stdout);
}

TEST(FrontEnds, GiveOneGraphForTheModulesThatComeWithTheTests) { compare_folder(models_of_tests()); }

TEST(FrontEnds, GiveOneGraphForTheModulesOfTheCourses) {
  if (!corpus("seeds"))
    GTEST_SKIP() << "no corpora at hand";
  compare_folder(*corpus("seeds"));
}

}  // namespace
}  // namespace tenon
