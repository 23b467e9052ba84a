#include "report/print_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ops/registry.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

// Of a model with two modules, which ran three times.
class PrintProfile : public ::testing::Test {
 protected:
  PrintProfile() : modules_(graph()) {
    measurement_.threads = 2;
    measurement_.ceilings = {
        .flops_per_second = 100e9,
        .bandwidths = {{"L1", 1 << 15, 80e9}, {"L2", 1 << 20, 40e9}, {"memory", 0, 10e9}}};
    measurement_.before_steps = {4e-6, 6e-6, 5e-6};
    measurement_.steps = {{.kind = MeasuredStep::Kind::Kernel,
                           .name = "kernel0",
                           .sources = {"/a/MatMul", "/a/Add"},
                           .reads = {"f32[2]"},
                           .writes = {"f32[2]"},
                           .flops = 5e6,
                           .bytes = 2e5,
                           .seconds = {2e-4, 1e-4, 1e-4},
                           .typical = 1e-4,
                           .at_least = 5e-5,
                           .bound = Bound::Compute},
                          {.kind = MeasuredStep::Kind::View,
                           .name = "reshape",
                           .sources = {"/b/Reshape"},
                           .seconds = {0, 0, 0}},
                          {.kind = MeasuredStep::Kind::Host,
                           .name = "nonzero",
                           .sources = {"/b/a module with a rather long name/NonZero"},
                           .seconds = {3e-4, 3e-4, 3e-4},
                           .typical = 3e-4,
                           .bound = Bound::Overhead}};
    measurement_.whole = {.name = "the whole run",
                          .flops = 5e6,
                          .bytes = 2e5,
                          .seconds = {5e-4, 4e-4, 4.1e-4},
                          .typical = 4.1e-4,
                          .at_least = 5e-5};
  }

  static const Graph& graph() {
    register_ops();
    static Graph graph;
    if (graph.node_count() == 0) {
      Value value = graph.add_input(Type::tensor(DType::F32, {Dim(2)}), "x");
      for (const char* name :
           {"/a/MatMul", "/a/Add", "/b/Reshape", "/b/a module with a rather long name/NonZero"}) {
        const WithSources sources(graph, {name});
        value = graph.create("relu", {{"x", value}})->result();
      }
      graph.set_outputs({value}, {"y"});
    }
    return graph;
  }

  Measurement measurement_;
  Modules modules_;
};

TEST_F(PrintProfile, NamesTheGpuAndShowsLaunches) {
  measurement_.gpu = gpu_named("sm_90");
  measurement_.steps[0].launches = {{.blocks = 1000,
                                     .threads = 256,
                                     .registers = 40,
                                     .spilled_bytes = 16,
                                     .shared_bytes = 2048,
                                     .blocks_per_multiprocessor = 6}};
  measurement_.steps[1] = {.kind = MeasuredStep::Kind::Copy,
                           .name = "copy to the device",
                           .seconds = {2e-5, 2e-5, 2e-5},
                           .typical = 2e-5};
  const std::string text = print_profile(measurement_, modules_, 20);
  EXPECT_NE(text.find(R"(
    blocks threads registers   spilled    shared occupancy  kernel
      1000     256        40      16 B    2048 B     75.0%  kernel0
)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(
means of the middle half of 3 runs, with kernels by the clock of the device
kernels 100 µs, host steps 300 µs, copies 20.0 µs
sm_90: 100.0 GFLOP/s; copies 80.0 GB/s in L1, 40.0 GB/s in L2, 10.0 GB/s in memory
)"),
            std::string::npos)
      << text;
  const Json json = profile_as_json("m", measurement_, modules_);
  EXPECT_EQ(json["device"], "sm_90");
  EXPECT_EQ(json["steps"][0]["launches"],
            Json::parse(R"([{"blocks": 1000, "threads": 256, "registers": 40, "spilled_bytes": 16,
                             "shared_bytes": 2048, "occupancy": 0.75}])"));
}

TEST_F(PrintProfile, SaysNothingOfLaunchesOnAProcessor) {
  EXPECT_EQ(print_profile(measurement_, modules_, 20).find("occupancy"), std::string::npos);
  EXPECT_FALSE(profile_as_json("m", measurement_, modules_).contains("device"));
}

TEST_F(PrintProfile, ShowsTheSlowestStepsFirst) {
  EXPECT_EQ(print_profile(measurement_, modules_, 20),
            "    time  share  GFLOP/s    GB/s ceiling  bound by  step\n"
            "  300 µs  73.2%        -       -       -  overhead  host nonzero …"
            "le with a rather long name/NonZero\n"
            "  100 µs  24.4%     50.0     2.0   50.0%  compute   kernel0 /a/MatMul +1\n"
            " 10.0 µs   2.4%                                     outside the steps\n"
            "  410 µs 100.0%     12.2     0.5   12.2%            the whole run\n"
            "\n"
            "    time  share  steps  module\n"
            "  300 µs  73.2%      1  b/a module with a rather long name\n"
            "  100 µs  24.4%      1  a\n"
            "\n"
            "means of the middle half of 3 runs, with 2 threads\n"
            "this machine: 100.0 GFLOP/s; copies 80.0 GB/s in L1, 40.0 GB/s in L2, 10.0 GB/s in memory\n");
}

TEST_F(PrintProfile, SumsUpTheStepsItDoesNotList) {
  const std::string text = print_profile(measurement_, modules_, 1);
  EXPECT_NE(text.find("  100 µs  24.4%                                     1 other\n"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("kernel0"), std::string::npos) << text;
}

TEST_F(PrintProfile, SaysWhyAStepIsAboveItsCeiling) {
  constexpr std::string_view kNote = "\nabove 100 %: fewer multiplications than counted";
  EXPECT_EQ(print_profile(measurement_, modules_, 20).find(kNote), std::string::npos);
  measurement_.steps[0].at_least = 1.1e-4;
  EXPECT_NE(print_profile(measurement_, modules_, 20).find(kNote), std::string::npos);
  EXPECT_EQ(print_profile(measurement_, modules_, 1).find(kNote), std::string::npos);  // it is not listed
}

TEST_F(PrintProfile, WritesWhatIsKnown) {
  const Json json = profile_as_json("m.onnx", measurement_, modules_);
  EXPECT_EQ(json.dump(),
            R"({"model":"m.onnx","threads":2,"runs":3,"peak_gflops":100.0,"bandwidths":[)"
            R"({"name":"L1","gbps":80.0},{"name":"L2","gbps":40.0},{"name":"memory","gbps":10.0}],)"
            R"("total":)" +
                json["total"].dump() + R"(,"outside_steps":)" + json["outside_steps"].dump() +
                R"(,"steps":)" + json["steps"].dump() + R"(,"modules":)" + json["modules"].dump() + "}");
  ASSERT_EQ(json["steps"].size(), 2U);  // views take no time
  const Json& kernel = json["steps"][0];
  EXPECT_EQ(kernel["kind"], "kernel");
  EXPECT_EQ(kernel["module"], "a");
  EXPECT_EQ(kernel["bound"], "compute");
  EXPECT_EQ(kernel["sources"], (std::vector<std::string>{"/a/MatMul", "/a/Add"}));
  EXPECT_NEAR(kernel["milliseconds"].get<double>(), 0.1, 1e-12);
  EXPECT_NEAR(kernel["share"].get<double>(), 1e-4 / 4.1e-4, 1e-12);
  EXPECT_NEAR(json["steps"][1]["share"].get<double>(), 3e-4 / 4.1e-4, 1e-12);
  EXPECT_EQ(json["total"]["share"], 1);
  EXPECT_NEAR(json["outside_steps"]["milliseconds"].get<double>(), 0.01, 1e-12);
  EXPECT_NEAR(json["outside_steps"]["share"].get<double>(), 1e-5 / 4.1e-4, 1e-12);
  EXPECT_NEAR(kernel["gflops"].get<double>(), 50, 1e-9);
  EXPECT_NEAR(kernel["ceiling"].get<double>(), 0.5, 1e-12);
  for (const char* unknown : {"flops", "gflops", "bytes", "gbps", "ceiling"})
    EXPECT_FALSE(json["steps"][1].contains(unknown)) << unknown;
}

TEST_F(PrintProfile, ATraceHasTheStepsOfOneRun) {
  const Preparation preparation{.reading = 0.5, .passes = {{"simplify", 2.0, 3, 7}}, .compiling = 0.25};
  const Json trace = trace_as_json("m.onnx", measurement_, preparation, modules_);
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  std::vector<std::string> names;
  double end = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M")
      continue;
    names.push_back(event["name"]);
    if (event["name"] == "run") {
      EXPECT_EQ(event["ts"], 752e3);
      EXPECT_NEAR(event["dur"].get<double>(), 410, 1e-3);  // the last of the three
    }
    if (event["tid"] == 2 && event["name"] != "run")
      end = event["ts"].get<double>() + event["dur"].get<double>();
  }
  EXPECT_EQ(names, (std::vector<std::string>{"read the model", "simplify", "fuse and generate code", "run",
                                             "before the steps", "kernel0 /a/MatMul", "reshape /b/Reshape",
                                             "nonzero /b/a module with a rather long name/NonZero"}));
  EXPECT_NEAR(end, 752e3 + 405, 1e-2);
}

// What the trace event format asks of every event, in microseconds.
TEST_F(PrintProfile, ATraceNamesItsProcessAndItsThreads) {
  std::map<std::string, std::string> names;  // by the event, and by the thread where it is of one
  std::set<int> threads;
  const Json trace = trace_as_json("m.onnx", measurement_, {.reading = 0.5}, modules_);
  for (const Json& event : trace["traceEvents"]) {
    EXPECT_TRUE(event["name"].is_string() && event["args"].is_object()) << event;
    EXPECT_EQ(event["pid"], 1) << event;
    ASSERT_TRUE(event["tid"].is_number_integer()) << event;
    if (event["ph"] == "M") {
      const std::string kind = event["name"];
      names[kind == "thread_name" ? kind + event["tid"].dump() : kind] = event["args"]["name"];
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    threads.insert(event["tid"].get<int>());
    EXPECT_TRUE(event["cat"].is_string()) << event;
    EXPECT_TRUE(event["ts"].is_number() && event["ts"] >= 0) << event;
    EXPECT_TRUE(event["dur"].is_number() && event["dur"] >= 0) << event;
  }
  EXPECT_EQ(names, (std::map<std::string, std::string>{{"process_name", "tenon: m.onnx"},
                                                       {"thread_name1", "reading and compiling"},
                                                       {"thread_name2", "a run, step by step"}}));
  EXPECT_EQ(threads, (std::set<int>{1, 2}));
}

// Perfetto cuts times off at nanoseconds, and leaves out what then overlaps without being inside.
TEST_F(PrintProfile, NoSlicesOfATraceOverlap) {
  MeasuredStep& step = measurement_.steps[0];
  measurement_.steps.assign(1000, step);
  double sum = measurement_.before_steps[2];
  for (size_t i = 0; i < 1000; ++i)
    sum += measurement_.steps[i].seconds[2] = 1e-7 * (1 + std::sqrt(static_cast<double>(i)));
  measurement_.whole.seconds[2] = sum;
  measurement_.whole.seconds[0] = 2 * sum;
  measurement_.whole.seconds[1] = sum / 2;
  const Json trace = trace_as_json("m.onnx", measurement_, {.reading = 0.1, .compiling = 1. / 3}, modules_);
  std::map<int, std::vector<int64_t>> ends;  // of the slices of a thread that are open
  size_t slices = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X")
      continue;
    ++slices;
    const auto nanoseconds = [&](const char* field) {
      return static_cast<int64_t>(event[field].get<double>() * 1000.0);
    };
    const int64_t begin = nanoseconds("ts"), end = begin + nanoseconds("dur");
    std::vector<int64_t>& open = ends[event["tid"].get<int>()];
    while (!open.empty() && open.back() <= begin)
      open.pop_back();
    EXPECT_TRUE(open.empty() || end <= open.back()) << event;
    EXPECT_LE(open.size(), 1U) << event;  // steps are in the run, and nowhere else
    open.push_back(end);
  }
  EXPECT_EQ(slices, 2 + 2 + 1000U);
}

}  // namespace
}  // namespace tenon
