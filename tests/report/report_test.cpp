#include "report/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "compile_here.h"
#include "compiler/separate_gpu.h"
#include "frontends/read_model.h"
#include "ir/graph_text.h"
#include "report/page.h"
#include "verify/sample_inputs.h"

namespace tenon {

using runtime::ElementError;

namespace {

using Json = nlohmann::ordered_json;

Json report_of(Graph& graph, const std::string& not_verified = "it takes long",
               const compiler::CompileContext& compile = here()) {
  const Data inputs = sample_inputs(graph);
  return make_report(graph, inputs,
                     {.model = "m",
                      .version = "1",
                      .compile = compile,
                      .measure = {.threads = 1, .seconds = 0},
                      .not_verified = not_verified});
}

Json report_of_builtin(const std::string& name) {
  register_ops();
  return report_of(*read_model("builtin:" + name));
}

bool is_counted(const Json& node) {
  const std::string kind = node["kind"];
  return kind != "input" && kind != "output" && kind != "constant" && kind != "parameter";
}

// The nodes of the last stage; on the way, every stage must follow from the one before.
std::set<int64_t> replay(const Json& report) {
  std::set<int64_t> alive;
  for (const Json& stage : report["stages"]) {
    SCOPED_TRACE(stage["name"].get<std::string>());
    for (int64_t node : stage["removed"])
      EXPECT_EQ(alive.erase(node), 1U);
    for (int64_t node : stage["added"])
      EXPECT_TRUE(alive.insert(node).second);
    for (const Json& change : stage["rewired"])
      EXPECT_TRUE(alive.contains(change[0]));
    int64_t count = 0;
    for (int64_t node : alive)
      count += is_counted(report["nodes"].at(static_cast<size_t>(node))) ? 1 : 0;
    EXPECT_LE(stage["nodes"], count);  // what follows from constants alone does not count
  }
  return alive;
}

// What each node reads in the last stage.
std::map<int64_t, Json> last_inputs(const Json& report) {
  std::map<int64_t, Json> inputs;
  for (const Json& stage : report["stages"]) {
    for (int64_t node : stage["added"])
      inputs[node] = report["nodes"][static_cast<size_t>(node)]["inputs"];
    for (const Json& change : stage["rewired"])
      inputs[change[0]] = change[1];
  }
  return inputs;
}

void expect_consistent(const Json& report) {
  const std::set<int64_t> alive = replay(report);
  for (const auto& [node, inputs] : last_inputs(report))
    if (alive.contains(node))
      for (const Json& input : inputs)
        EXPECT_TRUE(alive.contains(input.is_array() ? input[0] : input)) << node;
  const size_t strings = report["strings"].size(), steps = report["kernels"].size();
  for (const Json& kernel : report["kernels"]) {
    for (int64_t node : kernel["nodes"])
      EXPECT_TRUE(alive.contains(node)) << kernel;
    for (size_t source : kernel["sources"])
      EXPECT_LT(source, strings);
    EXPECT_TRUE(std::isfinite(kernel["share"].get<double>())) << kernel;
    EXPECT_GE(kernel["share"], 0) << kernel;
    if (kernel["kind"] == "kernel") {
      EXPECT_FALSE(kernel["nodes"].empty()) << kernel;
      EXPECT_NE(report["loops"].at(kernel["loops"].get<size_t>())["before"], "");
    }
  }
  for (const Json& edge : report["missed"]) {
    ASSERT_LT(std::max(edge["from"].get<size_t>(), edge["to"].get<size_t>()), steps);
    const auto milliseconds = [&](const char* end) {
      return report["kernels"][edge[end].get<size_t>()]["milliseconds"].get<double>();
    };
    EXPECT_LE(edge["microseconds"], 1e3 * (milliseconds("from") + milliseconds("to")) * (1 + 1e-9)) << edge;
  }
  const Json& memory = report["memory"];
  EXPECT_EQ(memory["live"].size(), steps);
  EXPECT_LE(memory["lower_bound"], memory["arena"]);
  for (int64_t live : memory["live"])
    EXPECT_LE(live, memory["lower_bound"]);
  for (const Json& tensor : memory["tensors"]) {
    EXPECT_LE(tensor["offset"].get<int64_t>() + tensor["bytes"].get<int64_t>(), memory["arena"]);
    EXPECT_LE(tensor["from"], tensor["to"]);
    EXPECT_LT(tensor["to"], steps);
  }
  for (const Json& rewrite : report["rewrites"])
    EXPECT_LT(rewrite["stage"], report["stages"].size());
}

TEST(Report, HasTheMemoryAndTheLaunchesOfAGpu) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(graph g(%x: f32[4,4]) {
    %w = constant(value=f32[4] {1, 2, 3, 4})
    %0 = matmul(%x, %x)
    %1 = add(%0, %w)
    %2 = matmul(%1, %1)
    return %2
  })");
  const Json report = report_of(*graph, "it takes long", for_gpu());
  EXPECT_EQ(report["machine"]["device"], "sm_90");
  EXPECT_EQ(report["machine"]["peak_gflops"], peak_flops(gpu_named("sm_90")) / 1e9);
  EXPECT_EQ(report["memory"]["device"], "sm_90");
  EXPECT_EQ(report["memory"]["device_constants"], 4 * 4);
  EXPECT_GT(report["memory"]["arena"], 0);
  for (const Json& step : report["kernels"]) {
    EXPECT_EQ(step.contains("launches"), step["kind"] == "kernel");
    EXPECT_TRUE(step["kind"] == "kernel" || step["kind"] == "copy") << step["kind"];
  }
}

TEST(Report, SaysNothingOfAGpuWhereThereIsNone) {
  const Json report = report_of_builtin("chain5");
  EXPECT_FALSE(report["machine"].contains("device"));
  EXPECT_FALSE(report["memory"].contains("device"));
}

TEST(Report, IsConsistent) {
  for (const std::string name :
       {"resnet_block", "mha_causal", "unoptimized", "tiny", "cond", "while_loop", "scan"}) {
    SCOPED_TRACE(name);
    expect_consistent(report_of_builtin(name));
  }
}

TEST(Report, FollowsAKernelToTheNodesOfTheUser) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph main(%x: f32[8,8]) {
      %w: f32[8,8] = parameter(name="block.fc.weight", value=f32[8,8] splat 0.5)
      %a = matmul(%x, %w) from "product"
      %b = relu(%a)
      return %b
    })");
  const Json report = report_of(*graph);
  ASSERT_EQ(report["kernels"].size(), 1U);
  const Json& kernel = report["kernels"][0];
  std::set<std::string> sources;
  for (size_t place : kernel["sources"])
    sources.insert(report["strings"][place].get<std::string>());
  EXPECT_EQ(sources, (std::set<std::string>{"%b relu", "product"}));
  EXPECT_EQ(report["summary"]["parameters"], 64);
  EXPECT_EQ(report["summary"]["kernels"], 1);
  EXPECT_EQ(report["not_verified"], "it takes long");
  EXPECT_EQ(report["verification"].size(), 0U);
}

TEST(Report, SaysWhatVerifyingFound) {
  register_ops();
  const std::unique_ptr<Graph> graph = read_model("builtin:simple_conv_bn");
  const Json report = report_of(*graph, "");
  EXPECT_FALSE(report.contains("not_verified"));
  ASSERT_GE(report["verification"].size(), 3U);
  const Json& program = report["verification"].back();
  EXPECT_EQ(program["level"], "compiled");
  EXPECT_EQ(program["pass"], "compiled program");
  EXPECT_EQ(program["numbers"], "ok");
  EXPECT_EQ(program["gradients"], "-");
  const auto of_everything = std::ranges::find_if(
      report["verification"], [](const Json& row) { return row["pass"] == "everything"; });
  ASSERT_NE(of_everything, report["verification"].end());
  const Json& everything = *of_everything;
  EXPECT_EQ(everything["level"], "portable");
  EXPECT_EQ(everything["numbers"], "ok");
  EXPECT_EQ(everything["gradients"], "ok");
  EXPECT_LT(everything["difference"], 1e-5);
  EXPECT_NE(everything["notes"].dump().find("no gradient any more: "), std::string::npos) << everything;
}

TEST(Report, SymbolicSizesAreThoseOfTheInputs) {
  const std::unique_ptr<Graph> graph = parse_graph("graph(%x: f32[batch,4]) { %y = relu(%x) return %y }");
  const Json report = make_report(
      *graph, {Tensor(DType::F32, {3, 4})},
      {.model = "m", .version = "1", .compile = here(), .measure = {.seconds = 0}, .not_verified = "no"});
  EXPECT_EQ(report["summary"]["sizes"].dump(), R"({"batch":3})");
  EXPECT_EQ(report["kernels"][0]["bytes"], 2 * 3 * 4 * 4);
}

// Errors speak of the user's names, whatever nodes are called while they are compiled.
TEST(Report, AnErrorNamesTheNodesOfTheUser) {
  const std::unique_ptr<Graph> graph =
      parse_graph(R"(graph(%t: f32[4,2], %i: i64[3]) { %y = gather(%t, %i) from "embedding" return %y })");
  const Data inputs{Tensor(DType::F32, {4, 2}), Tensor::of<int64_t>({1, 2, 9})};
  const ReportOptions options{.model = "m",
                              .version = "1",
                              .compile = here(),
                              .measure = {.seconds = 0},
                              .not_verified = "it takes long"};
  expect_error<ElementError>(
      [&] { make_report(*graph, inputs, options); },
      "node \"embedding\": an index is out of range, or an integer is divided by zero");
}

TEST(Page, HoldsTheDataWhateverNamesHold) {
  const std::string name = "</script><!-- \xff \u2028 \"&";
  const std::string page = page_of({{"model", name}});
  const std::string_view page_before = page_template();
  const size_t place = page_before.find(kPageDataPlace);
  const std::string_view rest = page_before.substr(place + kPageDataPlace.size());
  ASSERT_TRUE(page.starts_with(page_before.substr(0, place)));
  ASSERT_TRUE(page.ends_with(rest));
  const std::string data = page.substr(place, page.size() - place - rest.size());
  EXPECT_EQ(data.find('<'), std::string::npos) << data;
  EXPECT_EQ(Json::parse(data)["model"], "</script><!-- \uFFFD \u2028 \"&");
}

}  // namespace
}  // namespace tenon
