// verify.cpp — tenon verify: is the model still the same after every pass?
#include "verify/verify.h"

#include <nlohmann/json.hpp>

#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/listen.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/output.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  VerifyOptions verify;
  std::string numerics = "default", inputs, json;
};

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::Passed:
      return "ok";
    case Verdict::Failed:
      return "FAILED";
    case Verdict::Unknown:
      return "unknown";
    case Verdict::NoGradient:
      return "no gradient";
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

// The first few names of a list that may be long.
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kMost = 3;
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + std::min(names.size(), kMost), ", "));
  return names.size() <= kMost ? text : fmt::format("{} and {} more", text, names.size() - kMost);
}

std::vector<std::string> notes(const Check& check) {
  std::vector<std::string> notes;
  if (!check.detail.empty())
    notes.push_back(check.detail);
  if (!check.nearly_zero.empty())
    notes.push_back(
        fmt::format("nearly zero, so that comparing proves nothing: {}", some(check.nearly_zero)));
  if (!check.unchecked.empty())
    notes.push_back(fmt::format("not checked: {}", some(check.unchecked)));
  if (!check.missing.empty())
    notes.push_back(fmt::format("no gradient any more: {}", some(check.missing)));
  return notes;
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
      for (const std::string& note : notes(*check))
        if (told.insert(note).second)
          text += fmt::format("{}: {}: {}\n", result.pass, name, note);
  return text;
}

nlohmann::ordered_json as_json(const std::vector<PassVerification>& results) {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (const PassVerification& result : results) {
    nlohmann::ordered_json pass = {{"name", result.pass}, {"changes", result.changes}};
    for (const auto& [name, check] : checks(result))
      pass[std::string(name)] = {{"verdict", word(check->verdict)}, {"error", check->error},
                                 {"detail", check->detail},         {"nearly_zero", check->nearly_zero},
                                 {"unchecked", check->unchecked},   {"missing", check->missing}};
    passes.push_back(std::move(pass));
  }
  return {{"passes", passes}};
}

void verify(Options& options) {
  if (!options.json.empty())
    check_writable(options.json);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  options.verify.inputs = file.inputs_for(*graph);
  file.note_others();
  options.verify.numerics = parse_numerics_budget(options.numerics);
  std::optional<Progress> progress;
  options.verify.listener = listener_for(progress);
  const std::vector<PassVerification> results = verify_pipeline(*graph, options.verify);
  progress.reset();
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
  CLI::Option* inputs =
      command->add_option("--inputs", options->inputs,
                          "an .npz with the inputs, by name or as input_0, input_1, …; drawn when left out");
  add_samples(*command, options->verify.samples)->excludes(inputs);
  add_tolerance(*command, options->verify.tolerance);
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  command->add_option("--json", options->json, "writes the results to this file")->option_text("FILE");
  command->footer(
      "Checks: the outputs on random inputs or those given, the gradients for inputs and parameters, the "
      "form of the "
      "graph,\n"
      "and that parameters do not grow. Exit status 1 when one fails.\n"
      "Example: tenon verify builtin:resnet_block");
  command->callback([options] { verify(*options); });
}

}  // namespace tenon::cli
