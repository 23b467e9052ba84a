// benchmark.h — how long a compiled model takes, and what it needs, beside another way to run it.
#pragma once

#include <nlohmann/json.hpp>

#include "cli/contenders.h"
#include "cli/earlier_results.h"

namespace tenon::cli {

struct BenchmarkOptions {
  std::string model;  // as the user named it
  std::string numerics = "default", precision = "f32";
  std::string against = "";  // reference, unfused or without=NAME,…; empty: nothing
  std::string device = api::default_device();
  double seconds = 2;
  runtime::RunOptions run = {};
  std::vector<Pass> pipeline = portable_pipeline();
};

struct Benchmark {
  std::vector<Contender> contenders;
  nlohmann::ordered_json json;
};

// A user_error where `against` is none of these.
void check_against(const BenchmarkOptions& options);

// The graph is optimised on the way. Without inputs, it runs on some that are made up.
Benchmark bench_graph(Graph& graph, const std::optional<Data>& inputs, const BenchmarkOptions& options);

// All numbers, and beside each what it was earlier.
std::string text_of(const Benchmark& benchmark, const std::optional<EarlierResults>& earlier = std::nullopt);

}  // namespace tenon::cli
