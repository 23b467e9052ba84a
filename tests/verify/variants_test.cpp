// Models that four exporters wrote, each in its own spelling: what their authors wrote must be found in them
// again.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "corpora.h"
#include "frontends/onnx/import.h"
#include "ops/registry.h"
#include "passes/pipeline.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

// The sigmoid approximation of gelu is our silu with a factor.
std::string meaning(const Node& node) {
  if (node.is("silu"))
    return node.attr("alpha").as<double>() == 1 ? "silu" : "gelu";
  static const std::map<std::string_view, std::string> names = {
      {"gelu", "gelu"}, {"layer_norm", "layernorm"}, {"rms_norm", "rmsnorm"}};
  const auto it = names.find(node.op().name);
  return it == names.end() ? "" : it->second;
}

void check_counts(const fs::path& model, const nlohmann::json& wanted) {
  SCOPED_TRACE(model.filename().string());
  const std::unique_ptr<Graph> graph = onnx::read_onnx(model);
  Journal journal;
  optimize(*graph, journal);
  std::map<std::string, int64_t> counts;
  for (const Node* node : graph->nodes())
    ++counts[meaning(*node)];
  for (const char* what : {"layernorm", "rmsnorm", "gelu", "silu"})
    if (wanted.contains(what)) {
      EXPECT_EQ(counts[what], wanted[what].get<int64_t>()) << what;
    }
}

TEST(Variants, HaveTheFunctionsTheirAuthorsWrote) {
  if (!corpus("variants"))
    GTEST_SKIP() << "no corpora at hand";
  register_ops();
  std::ifstream index(*corpus("variants") / "index.json");
  for (const nlohmann::json& entry : nlohmann::json::parse(index))
    check_counts(*corpus("variants") / entry["file"].get<std::string>(), entry["want"]);
}

}  // namespace
}  // namespace tenon
