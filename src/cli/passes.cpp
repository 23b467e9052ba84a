// passes.cpp — tenon passes and tenon rules: what optimises a model.
#include "cli/commands.h"
#include "cli/output.h"
#include "passes/pipeline.h"
#include "rewrite/rules/rules.h"

namespace tenon::cli {
namespace {

void list_passes() {
  for (const Pass& pass : portable_pipeline())
    write_output(fmt::format("{:<22} {}\n{:<22} {}\n", pass.name, pass.doc, "", pass.why_here));
}

void list_rules() {
  for (const auto& [subject, rules] : all_rules()) {
    write_output(fmt::format("{}\n", subject));
    for (const Rule& rule : *rules)
      write_output(fmt::format("  {:<32} {:<18} {}\n", rule.name, name(rule.numerics), rule.to_string()));
  }
}

void tell_about(const std::string& wanted) {
  std::vector<std::string_view> names;
  for (const auto& [subject, rules] : all_rules())
    for (const Rule& rule : *rules) {
      names.push_back(rule.name);
      if (rule.name != wanted)
        continue;
      write_output(fmt::format("{}: {}\n  {} ({})\n  fires in      graph{}\n  but not in    graph{}\n",
                               subject, rule.name, rule.to_string(), name(rule.numerics), rule.fires,
                               rule.stays));
      return;
    }
  throw user_error("there is no rule \"{}\"{}", wanted, did_you_mean(wanted, names));
}

}  // namespace

void add_passes(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("passes", "lists the passes in their order, and why they stand there");
  command->callback(list_passes);
}

void add_rules(CLI::App& program) {
  auto wanted = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("rules", "lists the rewrite rules, or tells all about one");
  command->add_option("NAME", *wanted, "the rule to tell about");
  command->footer("Example: tenon rules multiply-by-one");
  command->callback([wanted] { wanted->empty() ? list_rules() : tell_about(*wanted); });
}

}  // namespace tenon::cli
