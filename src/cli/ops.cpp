// ops.cpp — tenon ops: the ops there are.
#include "cli/commands.h"
#include "cli/output.h"
#include "ir/op.h"

namespace tenon::cli {

void add_ops(CLI::App& program) {
  auto wanted = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand("ops", "lists the ops, or tells all about one");
  command->add_option("NAME", *wanted, "the op to tell about");
  command->footer("Example: tenon ops matmul");
  command->callback([wanted] {
    if (wanted->empty()) {
      for (const OpDef* op : registered_ops())
        write_output(fmt::format("{:<20} {:<8} {}\n", op->name, name(op->category), op->doc));
      return;
    }
    const OpDef& op = wanted_op(*wanted);
    write_output(fmt::format("{}\n  {} ({})\n", op.signature(), op.doc, name(op.category)));
    for (const AttributeDecl& attribute : op.attributes)
      write_output(fmt::format("  {}: {}{}\n", attribute.name, attribute.doc,
                               attribute.binding == Binding::Late ? " (may be computed by the model)" : ""));
  });
}

}  // namespace tenon::cli
