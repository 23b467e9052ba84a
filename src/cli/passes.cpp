// passes.cpp — tenon passes and tenon rules: what optimises a model.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "compiler/fuse_graph.h"
#include "passes/target_pipeline.h"
#include "rewrite/rules/rules.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

// Rules that a program added to ours, and which name no graphs, have this subject.
constexpr std::string_view kAdded = "added by this program";

std::string rule_and_numerics(const PatternRewrite& rewrite) {
  return fmt::format("{} ({})", formula_of(rewrite), name(rewrite.numerics));
}

// A row of one of the three tables.
struct Row {
  std::string_view table, name, doc, condition, why_here;
  std::shared_ptr<const PatternRewrite> rewrite = nullptr;
};

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  for (const Pass& pass : portable_pipeline())
    rows.push_back({"portable", pass.name, pass.doc, "", pass.why_here, pass.rewrite});
  for (const TargetPass& pass : target_passes())
    rows.push_back({"target", pass.name, pass.doc, pass.condition, pass.why_here});
  for (const compiler::KernelGraphPass& pass : compiler::FusedGraph::passes())
    rows.push_back({"kernel graph", pass.name, pass.doc, pass.condition, pass.why_here});
  return rows;
}

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const Row& row : all_rows())
    if (std::ranges::find(names, row.name) == names.end())
      names.emplace_back(row.name);
  return names;
}

std::string heading_of(std::string_view table) {
  if (table == "portable")
    return "portable passes: what tenon optimize runs, until nothing changes\n";
  return table == "target"
             ? "\ntarget passes: graph rewrites for this machine, numerics and precision, once\n"
             : "\nkernel graph passes: layouts, packing and fusion of the kernel graph, once\n";
}

std::string text_of(const Row& row) {
  return fmt::format("{:<22} {}\n{:<22} {}\n", row.name, row.doc, "", row.why_here) +
         (row.condition.empty() ? "" : fmt::format("{:<22} if: {}\n", "", row.condition));
}

Json as_json(const Row& row) {
  Json json = {{"table", row.table}, {"name", row.name}, {"doc", row.doc}, {"why_here", row.why_here}};
  if (!row.condition.empty())
    json["condition"] = row.condition;
  return json;
}

void list_passes(const std::string& json) {
  std::string text;
  std::string_view table;
  Json passes = Json::array();
  for (const Row& row : all_rows()) {
    if (row.table != table)
      text += heading_of(row.table);
    table = row.table;
    text += text_of(row);
    passes.push_back(as_json(row));
  }
  write_results(text, json, {{"passes", passes}});
}

void tell_about_pass(const std::string& wanted, const std::string& json) {
  std::string text;
  Json passes = Json::array();
  for (const Row& row : all_rows())
    if (row.name == wanted) {
      text +=
          text_of(row) + (row.rewrite ? fmt::format("{:<22} {}\n", "", rule_and_numerics(*row.rewrite)) : "");
      passes.push_back(as_json(row));
    }
  if (passes.empty())
    throw no_pass(wanted, row_names());
  write_results(text, json, {{"passes", passes}});
}

Json as_json(std::string_view subject, const Rule& rule) {
  return {{"name", rule.name},
          {"subject", subject},
          {"numerics", name(rule.numerics)},
          {"rule", rule.to_string()},
          {"fires", rule.fires},
          {"stays", rule.stays},
          {"for_saturation", rule.for_saturation}};
}

Json as_json(const PatternRewrite& rewrite) {
  return {{"name", rewrite.name},        {"subject", kAdded}, {"numerics", name(rewrite.numerics)},
          {"rule", formula_of(rewrite)}, {"fires", ""},       {"stays", ""}};
}

std::vector<std::shared_ptr<const PatternRewrite>> added_rules() {
  std::vector<std::shared_ptr<const PatternRewrite>> rules;
  for (const Pass& pass : portable_pipeline())
    if (pass.rewrite)
      rules.push_back(pass.rewrite);
  return rules;
}

void list_rules(const std::string& json) {
  std::string text;
  Json all = Json::array();
  const auto add = [&](std::string_view rule, Numerics numerics, const std::string& formula) {
    text += fmt::format("  {:<32} {:<18} {}\n", rule, name(numerics), formula);
  };
  for (const auto& [subject, rules] : all_rules()) {
    text += fmt::format("{}\n", subject);
    for (const Rule& rule : *rules) {
      add(rule.name, rule.numerics, rule.to_string());
      all.push_back(as_json(subject, rule));
    }
  }
  const auto added = added_rules();
  if (!added.empty())
    text += fmt::format("{}\n", kAdded);
  for (const auto& rewrite : added) {
    add(rewrite->name, rewrite->numerics, formula_of(*rewrite));
    all.push_back(as_json(*rewrite));
  }
  write_results(text, json, {{"rules", all}});
}

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const auto& [subject, rules] : all_rules())
    for (const Rule& rule : *rules)
      names.emplace_back(rule.name);
  for (const auto& rewrite : added_rules())
    names.push_back(rewrite->name);
  return names;
}

UserError no_rule(const std::string& wanted) {
  const std::vector<std::string> rules = rule_names(), passes = pass_names();
  std::string hint = did_you_mean(wanted, {rules.begin(), rules.end()});
  if (hint.empty())
    if (hint = did_you_mean(wanted, {passes.begin(), passes.end()}); !hint.empty())
      hint += " That is a pass, of which tenon passes tells.";
  return user_error("there is no rule \"{}\"{}", wanted,
                    hint.empty() ? "\n  hint: tenon rules lists them" : hint);
}

void tell_about_rule(const std::string& wanted, const std::string& json) {
  for (const auto& [subject, rules] : all_rules())
    for (const Rule& rule : *rules)
      if (rule.name == wanted)
        return write_results(
            fmt::format("{}: {}\n  {} ({})\n  fires in      graph{}\n  but not in    graph{}\n", subject,
                        rule.name, rule.to_string(), name(rule.numerics), rule.fires, rule.stays),
            json, {{"rules", Json::array({as_json(subject, rule)})}});
  for (const auto& rewrite : added_rules())
    if (rewrite->name == wanted)
      return write_results(fmt::format("{}: {}\n  {}\n", kAdded, wanted, rule_and_numerics(*rewrite)), json,
                           {{"rules", Json::array({as_json(*rewrite)})}});
  throw no_rule(wanted);
}

}  // namespace

void add_passes(CLI::App& program) {
  auto wanted = std::make_shared<std::string>(), json = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand(
      "passes", "lists the passes in their order, and why they stand there, or tells about one");
  offer(command->add_option("NAME", *wanted, "the pass to tell about"), {.words = row_names()});
  add_json(*command, *json);
  command->footer(examples({"tenon passes", "tenon passes simplify", "tenon passes --json -"}));
  command->callback([wanted, json] {
    check_json(*json);
    wanted->empty() ? list_passes(*json) : tell_about_pass(*wanted, *json);
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
    wanted->empty() ? list_rules(*json) : tell_about_rule(*wanted, *json);
  });
}

}  // namespace tenon::cli
