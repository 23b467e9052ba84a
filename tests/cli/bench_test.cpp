#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/shell.h"
#include "frontends/onnx_model.h"
#include "tensor/npy.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

class Bench : public CommandLine {
 protected:
  void SetUp() override {
    folder_.write("chain.tenon",
                  "graph main(%x: f32[64,64], %w: f32[64,64], %v: f32[64,64]) {\n  %a = mul(%x, %w)\n"
                  "  %b = add(%a, %v)\n  %y = relu(%b)\n  return %y\n}\n");
    folder_.write("ids.tenon",
                  "graph main(%table: f32[4,2], %ids: i64[n]) {\n  %i = abs(%ids)\n  %y = gather(%table, "
                  "%i)\n  return %y\n}\n");
  }

  // What it writes about a model.
  Json json_of(const std::string& arguments) const {
    const Outcome outcome = shell("tenon bench " + arguments + " --seconds 0 --json out.json");
    EXPECT_EQ(outcome.status, 0) << outcome.error;
    return Json::parse(read_file(folder_ / "out.json"));
  }

  static std::vector<std::string> keys(const Json& json) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : json.items())
      keys.push_back(key);
    return keys;
  }
};

TEST_F(Bench, WritesWhatItMeasured) {
  const Json json = json_of("chain.tenon --threads 2");
  EXPECT_EQ(keys(json),
            (std::vector<std::string>{"model", "threads", "median_ms", "p95_ms", "min_ms", "compile_ms",
                                      "cached_compile_ms", "runs", "peak_rss_mib", "kernels", "tuned_kernels",
                                      "arena_bytes", "arena_lower_bound", "host_steps", "bytes_moved"}));
  EXPECT_EQ(json["model"], "chain.tenon");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["runs"], 5);
  EXPECT_EQ(json["kernels"], 1);
  EXPECT_EQ(json["host_steps"], 0);
  EXPECT_EQ(json["bytes_moved"], 4 * 64 * 64 * 4);  // three inputs and the output
  EXPECT_GT(json["min_ms"], 0);
  EXPECT_LE(json["min_ms"], json["median_ms"]);
  EXPECT_LE(json["median_ms"], json["p95_ms"]);
  EXPECT_GT(json["compile_ms"], 0);
  EXPECT_GT(json["cached_compile_ms"], 0);
  EXPECT_GT(json["peak_rss_mib"], 1);
}

TEST_F(Bench, FusedValuesTakeNoMemory) {
  const Json json = json_of("chain.tenon");
  EXPECT_EQ(json["arena_bytes"], 0);
  EXPECT_EQ(json["arena_lower_bound"], 0);
}

TEST_F(Bench, ShowsATable) {
  const Outcome outcome = shell("tenon bench chain.tenon --seconds 0 --threads 1");
  EXPECT_EQ(outcome.status, 0) << outcome.error;
  EXPECT_EQ(outcome.error, "");
  for (const char* line :
       {"                           compiled\n", "\nmedian  ", "\np95  ", "\nmin  ",
        "\nruns                              5\n", "\ncompile  ", "\nkernels                           1\n",
        "\nhost steps                        0\n", "\nbytes moved                64.0 KiB\n",
        "\nintermediate memory             0 B\n", "\nwith 1 thread; peak memory "})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  EXPECT_EQ(outcome.out.find("speed-up"), std::string::npos) << outcome.out;
}

TEST_F(Bench, ComparesWithAKernelForEachNode) {
  const Json json = json_of("chain.tenon --against unfused");
  const Json against = json["against"];
  EXPECT_EQ(against["name"], "unfused");
  EXPECT_EQ(against["kernels"], 3);
  EXPECT_EQ(against["bytes_moved"], 8 * 64 * 64 * 4);
  EXPECT_EQ(against["arena_bytes"], 64 * 64 * 4);  // each result takes the place of the one before
  EXPECT_EQ(json["kernels"], 1);
  EXPECT_GT(against["compile_ms"], 0);
  EXPECT_EQ(json["speed_up"], against["median_ms"].get<double>() / json["median_ms"].get<double>());
}

TEST_F(Bench, ComparesWithPassesLeftOut) {
  folder_.write("twice.tenon",
                "graph main(%x: f32[64]) {\n  %a = exp(%x)\n  %b = exp(%a)\n  %c = exp(%x)\n  %d = exp(%c)\n"
                "  %y = add(%b, %d)\n  return %y, %d\n}\n");
  const Json json = json_of("twice.tenon --against without=merge-equal,simplify");
  EXPECT_EQ(json["against"]["name"], "without=merge-equal,simplify");
  EXPECT_EQ(json["against"]["kernels"], json["kernels"]);
  // Target passes too: this one makes several nodes of a gelu, for which there is no kernel else.
  folder_.write("gelu.tenon", "graph g(%x: f32[8,8]) { %0 = gelu(%x) return %0 }\n");
  EXPECT_EQ(json_of("gelu.tenon --against without=decompose-ops")["against"]["host_steps"], 1);
  expect("tenon bench twice.tenon --against without=merge-eqal", 2, "",
         "tenon: there is no pass \"merge-eqal\"\n  hint: did you mean merge-equal?\n");
  expect("tenon bench twice.tenon --against without=", 2, "",
         "tenon: --against without : a name is missing\n");
}

TEST_F(Bench, ComparesWithTheReferenceEvaluator) {
  const Json against = json_of("chain.tenon --against reference")["against"];
  EXPECT_EQ(keys(against), (std::vector<std::string>{"name", "median_ms", "p95_ms", "min_ms"}));
  const Outcome outcome = shell("tenon bench chain.tenon --seconds 0 --against reference");
  EXPECT_NE(outcome.out.find("compiled      reference\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("\nkernels                           1              -\n"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\nspeed-up  "), std::string::npos) << outcome.out;
}

TEST_F(Bench, ComparesWithEarlierResults) {
  Json before = json_of("chain.tenon --threads 1");
  before["kernels"] = 4;
  before["bytes_moved"] = 2 * before["bytes_moved"].get<int64_t>();
  folder_.write("before.json", before.dump());
  const Outcome outcome = shell("tenon bench chain.tenon --threads 1 --seconds 0 --compare before.json");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error, "");
  for (const char* line : {"                           compiled         before    ratio\n",
                           "\nruns                              5\n",
                           "\nkernels                           1              4    0.25x\n",
                           "\nhost steps                        0              0    1.00x\n",
                           "\nbytes moved                64.0 KiB      128.0 KiB    0.50x\n",
                           "\nintermediate memory             0 B            0 B    1.00x\n"})
    EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
  EXPECT_NE(outcome.out.find(" MiB, before "), std::string::npos) << outcome.out;
}

TEST_F(Bench, SaysWhereEarlierResultsAreOfSomethingElse) {
  json_of("chain.tenon --threads 2");
  const auto note = [&](const std::string& arguments) {
    return shell("tenon bench --seconds 0 --compare out.json " + arguments).error;
  };
  EXPECT_EQ(note("chain.tenon --threads 2"), "");
  EXPECT_EQ(note("chain.tenon --threads 1"), "note: out.json was measured for chain.tenon, with 2 threads\n");
  EXPECT_EQ(note("builtin:tiny --threads 2"),
            "note: out.json was measured for chain.tenon, with 2 threads\n");
}

TEST_F(Bench, RefusesToCompareWithOtherFiles) {
  expect_refused("tenon bench chain.tenon --compare none.json",
                 "cannot open none.json: No such file or directory");
  expect_refused("tenon bench chain.tenon --compare chain.tenon",
                 "--compare: chain.tenon is not what tenon bench --json writes");
  folder_.write("list.json", "[1]");
  expect_refused("tenon bench chain.tenon --compare list.json",
                 "--compare: list.json is not what tenon bench --json writes");
  folder_.write("less.json", R"({"model": "m", "threads": 1, "median_ms": "2"})");
  expect_refused("tenon bench chain.tenon --compare less.json",
                 "--compare: less.json is not what tenon bench --json writes: it has no number median_ms");
}

TEST_F(Bench, CountsWhatTheHostDoes) {
  folder_.write("sorted.tenon",
                "graph main(%x: f32[8]) {\n  %k = constant(value=i64[1] {8})\n  %y, %i = top_k(%x, %k)\n"
                "  return %y, %i\n}\n");
  const Json json = json_of("sorted.tenon");
  EXPECT_EQ(json["kernels"], 0);
  EXPECT_EQ(json["host_steps"], 1);
  EXPECT_EQ(json["bytes_moved"], 8 * (4 + 4 + 8) + 8);  // x, y, i and k
}

TEST_F(Bench, BindsSizes) {
  folder_.write("any.tenon", "graph main(%x: f32[n,4]) {\n  %y = relu(%x)\n  return %y\n}\n");
  EXPECT_EQ(json_of("any.tenon")["bytes_moved"], 2 * 4 * 4);
  EXPECT_EQ(json_of("any.tenon --dim n=10")["bytes_moved"], 2 * 40 * 4);
}

TEST_F(Bench, SaysWhichSizesNobodyGave) {
  folder_.write("any.tenon", "graph main(%x: f32[n,m], %z: f32[k]) {\n  %y = relu(%x)\n  return %y\n}\n");
  const auto notes = [&](const std::string& arguments) {
    return shell("tenon bench any.tenon --seconds 0 " + arguments).error;
  };
  EXPECT_EQ(notes(""),
            "note: sizes that are not given are 1; give them with --dim k=… --dim m=… --dim n=…\n");
  EXPECT_EQ(notes("--dim n=10 --dim k=2"),
            "note: sizes that are not given are 1; give them with --dim m=…\n");
  EXPECT_EQ(notes("--dim n=10 --dim k=2 --dim m=2"), "");
  EXPECT_EQ(notes("--quiet"), "");
  write_npz(folder_ / "in.npz", {{"x", Tensor(DType::F32, {4, 2})}, {"z", Tensor(DType::F32, {1})}});
  EXPECT_EQ(notes("--inputs in.npz"), "");
}

TEST_F(Bench, TakesInputs) {
  expect("tenon bench ids.tenon --seconds 0 --dim n=3", 2, "",
         "tenon: node \"%y\": an index is out of range, or an integer is divided by zero\n"
         "  hint: tenon run --engine reference says more\n"
         "  hint: the inputs were made up; give your own with --inputs\n");
  write_npz(folder_ / "in.npz",
            {{"table", Tensor(DType::F32, {4, 2})}, {"ids", Tensor::of<int64_t>({1, 3})}});
  EXPECT_EQ(json_of("ids.tenon --inputs in.npz")["runs"], 5);
}

TEST_F(Bench, RefusesNumbersThatMakeNoSense) {
  for (const std::string option :
       {"--threads 0", "--threads -2", "--threads 1025", "--threads many", "--seconds -1", "--seconds nan",
        "--seconds 1e9", "--against warp", "--against compiled"}) {
    const Outcome outcome = shell("tenon bench chain.tenon " + option);
    EXPECT_EQ(outcome.status, 2) << option;
    EXPECT_EQ(outcome.out, "") << option;
    EXPECT_NE(outcome.error.find(option.substr(0, option.find(' '))), std::string::npos) << outcome.error;
  }
  const Outcome none = shell("tenon bench chain.tenon --threads 0");
  EXPECT_NE(none.error.find("--threads: it must be a whole number from 1 to 1024, but is 0"),
            std::string::npos)
      << none.error;
}

TEST_F(Bench, RefusesWhatItCannotRead) {
  expect_refused("tenon bench none.onnx", "cannot open none.onnx: No such file or directory");
  const Outcome numerics = shell("tenon bench chain.tenon --numerics sloppy");
  EXPECT_EQ(numerics.status, 2);
  EXPECT_NE(numerics.error.find("sloppy"), std::string::npos) << numerics.error;
  using namespace onnx::encode;
  folder_.write("m.onnx", model({.nodes = {node("Frobnicate", {"x"}, {"y"})},
                                 .inputs = {value("x", kFloat, {2})},
                                 .outputs = {untyped("y")}}));
  const Outcome unknown = shell("tenon bench m.onnx");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.error.find("Frobnicate"), std::string::npos) << unknown.error;
}

TEST_F(Bench, AFileThatCannotBeWrittenIsKnownBeforeItRuns) {
  expect_refused("tenon bench none.onnx --json none/out.json",
                 "cannot write none/out.json: No such file or directory");
  expect_refused("tenon bench chain.tenon --json ./chain.tenon",
                 "./chain.tenon is the model itself, which would be lost");
}

}  // namespace
}  // namespace tenon::cli
