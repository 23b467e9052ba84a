// conformance.cpp — tenon conformance: runs folders of the ONNX backend test suite.
#include "verify/conformance.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/options.h"
#include "cli/output.h"

namespace tenon::cli {

using compiler::Placement;

namespace {

namespace fs = std::filesystem;

// Of all cases; nothing where none was compiled for a GPU.
std::optional<Placement> placement_of(const std::vector<CaseResult>& results) {
  std::optional<Placement> all;
  for (const CaseResult& result : results)
    if (result.placement) {
      all = all.value_or(Placement());
      all->add(*result.placement);
    }
  return all;
}

void add_placement(nlohmann::ordered_json& json, const std::optional<Placement>& placement) {
  if (!placement)
    return;
  json["device_nodes"] = placement->on_device;
  json["host_ops"] = placement->on_host;
}

nlohmann::ordered_json as_json(const std::vector<CaseResult>& results,
                               const std::map<CaseStatus, int64_t>& counts) {
  const auto count = [&](CaseStatus status) { return counts.contains(status) ? counts.at(status) : 0; };
  nlohmann::ordered_json json = {{"passed", count(CaseStatus::Pass)},
                                 {"failed", count(CaseStatus::Wrong) + count(CaseStatus::Error)},
                                 {"unsupported", count(CaseStatus::Unsupported)}};
  add_placement(json, placement_of(results));
  json["cases"] = nlohmann::ordered_json::array();
  for (const CaseResult& result : results) {
    json["cases"].push_back({{"name", result.name},
                             {"status", name(result.status)},
                             {"detail", result.detail},
                             {"opset", result.opset},
                             {"dtype", result.dtype}});
    add_placement(json["cases"].back(), result.placement);
  }
  return json;
}

void run(const std::vector<std::string>& folders, const std::string& json,
         std::optional<NumericsBudget> numerics, Engine engine, const std::string& device) {
  check_json(json);
  std::vector<CaseResult> results;
  std::map<CaseStatus, int64_t> counts;
  for (const fs::path folder : folders) {
    const std::vector<fs::path> cases = find_cases(folder);
    Progress progress("running case", static_cast<int64_t>(cases.size()));
    for (const fs::path& path : cases) {
      progress.step(path.filename().string());
      CaseResult result = run_case(path, numerics, engine, device);
      result.name = path == folder ? path.filename().string() : path.lexically_relative(folder).string();
      ++counts[result.status];
      if (result.status != CaseStatus::Pass && json != "-") {
        progress.clear();
        write_output(fmt::format("{} {}: {}\n", name(result.status), result.name, result.detail));
      }
      results.push_back(std::move(result));
    }
  }
  if (results.empty())
    throw user_error("there are no cases (folders with a model.onnx) in {}", fmt::join(folders, ", "));
  const int64_t failed = counts[CaseStatus::Wrong] + counts[CaseStatus::Error];
  std::string text = fmt::format(
      "{} passed, {} failed ({} wrong, {} errors), {} unsupported: {:.1f} % pass\n", counts[CaseStatus::Pass],
      failed, counts[CaseStatus::Wrong], counts[CaseStatus::Error], counts[CaseStatus::Unsupported],
      100.0 * static_cast<double>(counts[CaseStatus::Pass]) / static_cast<double>(results.size()));
  if (const std::optional<Placement> placement = placement_of(results))
    text += describe(*placement) + "\n";
  write_results(text, json, as_json(results, counts));
  if (failed > 0)
    throw Refused();
}

}  // namespace

void add_conformance(CLI::App& program) {
  struct Options {
    std::vector<std::string> folders;
    std::string json;
    std::string engine = "reference", numerics, device = api::default_device();
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("conformance", "runs folders of the ONNX backend test suite");
  offer_files(
      command->add_option("DIR", options->folders, "folders of cases, searched to any depth")->required());
  add_choice(*command, "--engine", options->engine, "what runs the models", {"reference", "compiled"});
  add_choice(*command, "--optimize", options->numerics, "optimises each model first, staying this exact",
             {"strict", "default", "fast"});
  add_device(*command, options->device);
  add_json(*command, options->json);
  command->footer(examples(
      {"tenon conformance /usr/share/libonnx-testdata/data/node/test_relu",
       "tenon conformance /usr/share/libonnx-testdata/data/simple --engine compiled --json cases.json"}));
  command->callback([options] {
    std::optional<NumericsBudget> numerics;
    if (!options->numerics.empty())
      numerics = parse_numerics_budget(options->numerics);
    run(options->folders, options->json, numerics, parse_engine(options->engine), options->device);
  });
}

}  // namespace tenon::cli
