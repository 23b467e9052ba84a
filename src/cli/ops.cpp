// ops.cpp — tenon ops: the ops there are, and those of PyTorch that are read.
#include "cli/commands.h"
#include "cli/output.h"
#include "frontends/torch/coverage.h"
#include "ir/op.h"

namespace tenon::cli {
namespace {

void list_ops() {
  for (const OpDef* op : registered_ops())
    write_output(fmt::format("{:<20} {:<8} {}\n", op->name, name(op->category), op->doc));
}

void tell_about(const std::string& wanted) {
  const OpDef& op = wanted_op(wanted);
  write_output(fmt::format("{}\n  {} ({})\n", op.signature(), op.doc, name(op.category)));
  for (const AttributeDecl& attribute : op.attributes)
    write_output(fmt::format("  {}: {}{}\n", attribute.name, attribute.doc,
                             attribute.binding == Binding::Late ? " (may be computed by the model)" : ""));
}

void list_torch_ops() {
  int64_t core = 0, read = 0, others = 0;
  for (const torch::Coverage& each : torch::coverage()) {
    write_output(fmt::format("{:<46} {:<6} {}\n", each.op, each.core ? "core" : "other",
                             each.read ? "read" : "missing"));
    core += each.core;
    read += each.core && each.read;
    others += !each.core;
  }
  write_output(fmt::format("{} of the {} ops of Core ATen are read, and {} others\n", read, core, others));
}

}  // namespace

void add_ops(CLI::App& program) {
  auto wanted = std::make_shared<std::string>();
  auto frontend = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("ops", "lists the ops, or tells all about one");
  CLI::Option* op = command->add_option("NAME", *wanted, "the op to tell about");
  command
      ->add_option("--frontend", *frontend, "lists the ops of a front end instead, and whether they are read")
      ->check(CLI::IsMember({"torch"}))
      ->excludes(op);
  command->footer("Examples: tenon ops matmul\n          tenon ops --frontend torch");
  command->callback([wanted, frontend] {
    if (!frontend->empty())
      list_torch_ops();
    else if (wanted->empty())
      list_ops();
    else
      tell_about(*wanted);
  });
}

}  // namespace tenon::cli
