// ops.cpp — tenon ops: the ops there are, and those of PyTorch that are read.
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "frontends/torch/coverage.h"
#include "ir/op.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

Json as_json(const OpDef& op) {
  Json attributes = Json::array();
  for (const AttributeDecl& attribute : op.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"doc", attribute.doc},
                          {"may_be_computed", attribute.binding == Binding::Late}});
  return {{"name", op.name},
          {"category", name(op.category)},
          {"doc", op.doc},
          {"signature", op.signature()},
          {"attributes", attributes}};
}

void list_ops(const std::string& json) {
  std::string text;
  Json ops = Json::array();
  for (const OpDef* op : registered_ops()) {
    text += fmt::format("{:<20} {:<8} {}\n", op->name, name(op->category), op->doc);
    ops.push_back(as_json(*op));
  }
  write_results(text, json, {{"ops", ops}});
}

void tell_about(const std::string& wanted, const std::string& json) {
  const OpDef& op = wanted_op(wanted);
  std::string text = fmt::format("{}\n  {} ({})\n", op.signature(), op.doc, name(op.category));
  for (const AttributeDecl& attribute : op.attributes)
    text += fmt::format("  {}: {}{}\n", attribute.name, attribute.doc,
                        attribute.binding == Binding::Late ? " (may be computed by the model)" : "");
  write_results(text, json, {{"ops", Json::array({as_json(op)})}});
}

void list_torch_ops(const std::string& json) {
  int64_t core = 0, read = 0, others = 0;
  std::string text;
  Json ops = Json::array();
  for (const torch::Coverage& each : torch::coverage()) {
    text += fmt::format("{:<46} {:<6} {}\n", each.op, each.core ? "core" : "other",
                        each.read ? "read" : "missing");
    ops.push_back({{"name", each.op}, {"core", each.core}, {"read", each.read}});
    core += each.core;
    read += each.core && each.read;
    others += !each.core;
  }
  text += fmt::format("{} of the {} ops of Core ATen are read, and {} others\n", read, core, others);
  write_results(text, json, {{"ops", ops}});
}

}  // namespace

void add_ops(CLI::App& program) {
  struct Options {
    std::string wanted, frontend, json;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("ops", "lists the ops, or tells all about one");
  std::vector<std::string> names;
  for (const OpDef* op : registered_ops())
    names.emplace_back(op->name);
  CLI::Option* op = command->add_option("NAME", options->wanted, "the op to tell about");
  offer(op, {.words = names});
  add_choice(*command, "--frontend", options->frontend,
             "lists the ops of a front end instead, and whether they are read", {"torch"})
      ->excludes(op);
  add_json(*command, options->json);
  command->footer(examples({"tenon ops", "tenon ops matmul", "tenon ops --frontend torch --json ops.json"}));
  command->callback([options] {
    check_json(options->json);
    if (!options->frontend.empty())
      list_torch_ops(options->json);
    else if (options->wanted.empty())
      list_ops(options->json);
    else
      tell_about(options->wanted, options->json);
  });
}

}  // namespace tenon::cli
