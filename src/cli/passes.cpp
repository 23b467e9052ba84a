// passes.cpp — tenon passes and tenon rules: what optimises a model.
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "passes/pipeline.h"
#include "rewrite/rules/rules.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

void list_passes(const std::string& json) {
  std::string text;
  Json passes = Json::array();
  for (const Pass& pass : portable_pipeline()) {
    text += fmt::format("{:<22} {}\n{:<22} {}\n", pass.name, pass.doc, "", pass.why_here);
    passes.push_back({{"name", pass.name}, {"doc", pass.doc}, {"why_here", pass.why_here}});
  }
  write_results(text, json, {{"passes", passes}});
}

Json as_json(std::string_view subject, const Rule& rule) {
  return {{"name", rule.name},        {"subject", subject},  {"numerics", name(rule.numerics)},
          {"rule", rule.to_string()}, {"fires", rule.fires}, {"stays", rule.stays}};
}

void list_rules(const std::string& json) {
  std::string text;
  Json all = Json::array();
  for (const auto& [subject, rules] : all_rules()) {
    text += fmt::format("{}\n", subject);
    for (const Rule& rule : *rules) {
      text += fmt::format("  {:<32} {:<18} {}\n", rule.name, name(rule.numerics), rule.to_string());
      all.push_back(as_json(subject, rule));
    }
  }
  write_results(text, json, {{"rules", all}});
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const auto& [subject, rules] : all_rules())
    for (const Rule& rule : *rules)
      names.emplace_back(rule.name);
  return names;
}

void tell_about(const std::string& wanted, const std::string& json) {
  for (const auto& [subject, rules] : all_rules())
    for (const Rule& rule : *rules)
      if (rule.name == wanted)
        return write_results(
            fmt::format("{}: {}\n  {} ({})\n  fires in      graph{}\n  but not in    graph{}\n", subject,
                        rule.name, rule.to_string(), name(rule.numerics), rule.fires, rule.stays),
            json, {{"rules", Json::array({as_json(subject, rule)})}});
  const std::vector<std::string> names = rule_names();
  throw user_error("there is no rule \"{}\"{}", wanted, did_you_mean(wanted, {names.begin(), names.end()}));
}

}  // namespace

void add_passes(CLI::App& program) {
  auto json = std::make_shared<std::string>();
  CLI::App* command =
      program.add_subcommand("passes", "lists the passes in their order, and why they stand there");
  add_json(*command, *json);
  command->footer(examples({"tenon passes", "tenon passes --json -"}));
  command->callback([json] {
    check_json(*json);
    list_passes(*json);
  });
}

void add_rules(CLI::App& program) {
  auto wanted = std::make_shared<std::string>(), json = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("rules", "lists the rewrite rules, or tells all about one");
  offer(command->add_option("NAME", *wanted, "the rule to tell about"), {.words = rule_names()});
  add_json(*command, *json);
  command->footer(examples({"tenon rules", "tenon rules multiply-by-one", "tenon rules --json rules.json"}));
  command->callback([wanted, json] {
    check_json(*json);
    wanted->empty() ? list_rules(*json) : tell_about(*wanted, *json);
  });
}

}  // namespace tenon::cli
