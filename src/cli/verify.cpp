// verify.cpp — tenon verify: is the model still the same after every pass?
#include "verify/verify.h"

#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/load_model.h"
#include "cli/output.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  VerifyOptions verify;
  std::string numerics = "default", json;
};

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Passed:
      return "ok";
    case Verdict::Failed:
      return "FAILED";
    case Verdict::Unknown:
      return "unknown";
  }
  return "";
}

std::vector<std::pair<std::string_view, const Check*>> checks(const PassVerification& result) {
  return {{"numbers", &result.numbers},
          {"gradients", &result.gradients},
          {"lint", &result.lint},
          {"parameters", &result.parameters}};
}

std::string with_error(const Check& check) {
  return check.verdict == Verdict::Passed ? fmt::format("ok {:.1e}", check.error)
                                          : std::string(word(check.verdict));
}

std::string table(const std::vector<PassVerification>& results) {
  std::string text = fmt::format("{:<22} {:>8} {:>12} {:>12} {:>8} {:>11}\n", "pass", "changes", "numbers",
                                 "gradients", "lint", "parameters");
  for (const PassVerification& result : results)
    text += fmt::format("{:<22} {:>8} {:>12} {:>12} {:>8} {:>11}\n", result.pass, result.changes,
                        with_error(result.numbers), with_error(result.gradients), word(result.lint.verdict),
                        word(result.parameters.verdict));
  std::set<std::string> told;
  for (const PassVerification& result : results)
    for (const auto& [name, check] : checks(result))
      if (!check->detail.empty() && told.insert(check->detail).second)
        text += fmt::format("{}: {}: {}\n", result.pass, name, check->detail);
  return text;
}

nlohmann::json as_json(const std::vector<PassVerification>& results) {
  nlohmann::json passes = nlohmann::json::array();
  for (const PassVerification& result : results) {
    nlohmann::json pass = {{"name", result.pass}, {"changes", result.changes}};
    for (const auto& [name, check] : checks(result))
      pass[std::string(name)] = {
          {"verdict", word(check->verdict)}, {"error", check->error}, {"detail", check->detail}};
    passes.push_back(std::move(pass));
  }
  return {{"passes", passes}};
}

// How many passes change something, and then everything once more.
int64_t count_changes(const Graph& graph, const VerifyOptions& options) {
  int64_t count = 1;
  Journal journal(options.numerics);
  optimize(*graph.clone(), journal, {.after_pass = [&](const Pass&, const Graph&) { ++count; }});
  return count;
}

void verify(Options& options) {
  const std::unique_ptr<Graph> graph = load_model(options.model);
  options.verify.numerics = parse_numerics_budget(options.numerics);
  Progress progress("checking pass", count_changes(*graph, options.verify));
  options.verify.before_pass = [&](std::string_view pass) { progress.step(pass); };
  const std::vector<PassVerification> results = verify_pipeline(*graph, options.verify);
  if (!options.json.empty())
    write_file(options.json, as_json(results).dump(2) + "\n");
  write_output(table(results));
  for (const PassVerification& result : results)
    if (result.failed())
      throw Refused();
}

}  // namespace

void add_verify(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("verify", "checks, pass by pass, that optimising a model leaves it the same");
  options->model.add_to(*command);
  command->add_option("--samples", options->verify.samples, "how many random inputs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--tolerance", options->verify.tolerance, "max |difference| over max |expected|")
      ->capture_default_str();
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  command->add_option("--json", options->json, "writes the results to this file")->option_text("FILE");
  command->footer(
      "Checks: the outputs on random inputs, the gradients for inputs and parameters, the form of the "
      "graph,\n"
      "and that parameters do not grow. Exit status 1 when one fails.\n"
      "Example: tenon verify builtin:resnet_block");
  command->callback([options] { verify(*options); });
}

}  // namespace tenon::cli
