#include "cli/verification.h"

#include <nlohmann/json.hpp>

#include "verify/notes.h"

namespace tenon::cli {
namespace {

std::vector<std::pair<std::string_view, const Check*>> checks(const PassVerification& result) {
  return {{"numbers", &result.numbers},
          {"gradients", &result.gradients},
          {"lint", &result.lint},
          {"parameters", &result.parameters}};
}

// A program is the result of no rewrites of its own.
std::string changes_of(const PassVerification& result) {
  return result.level == Level::Compiled ? "-" : fmt::format("{}", result.changes);
}

std::string with_error(const Check& check) {
  return check.verdict == Verdict::Passed ? fmt::format("ok {:.1e}", check.error)
                                          : std::string(tenon::name(check.verdict));
}

}  // namespace

std::string verification_table(const std::vector<PassVerification>& results) {
  constexpr std::string_view kRow = "{:<8} {:<22} {:>7} {:>10} {:>11} {:>6} {:>10}\n";
  std::string text =
      fmt::format(kRow, "level", "pass", "changes", "numbers", "gradients", "lint", "parameters");
  for (const PassVerification& result : results)
    text += fmt::format(kRow, tenon::name(result.level), result.pass, changes_of(result),
                        with_error(result.numbers), with_error(result.gradients),
                        tenon::name(result.lint.verdict), tenon::name(result.parameters.verdict));
  std::set<std::string> told;
  for (const PassVerification& result : results)
    for (const auto& [name, check] : checks(result))
      for (const std::string& note : notes_of(*check))
        if (told.insert(note).second)
          text += fmt::format("{}: {}: {}\n", result.pass, name, note);
  return text;
}

nlohmann::ordered_json verification_json(const std::vector<PassVerification>& results) {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (const PassVerification& result : results) {
    nlohmann::ordered_json pass = {
        {"level", tenon::name(result.level)}, {"name", result.pass}, {"changes", result.changes}};
    for (const auto& [name, check] : checks(result))
      pass[std::string(name)] = {{"verdict", tenon::name(check->verdict)},
                                 {"error", check->error},
                                 {"detail", check->detail},
                                 {"nearly_zero", check->nearly_zero},
                                 {"rounding", check->rounding},
                                 {"unsteady", check->unsteady},
                                 {"was_nan", check->was_nan},
                                 {"unchecked", check->unchecked},
                                 {"missing", check->missing}};
    passes.push_back(std::move(pass));
  }
  return {{"passes", passes}};
}

}  // namespace tenon::cli
