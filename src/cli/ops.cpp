// ops.cpp — tenon ops: the ops there are.
#include <cstdio>

#include "base/error.h"
#include "cli/commands.h"
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
        std::fputs(fmt::format("{:<20} {:<8} {}\n", op->name, name(op->category), op->doc).c_str(), stdout);
      return;
    }
    const OpDef* op = &wanted_op(*wanted);
    std::fputs(fmt::format("{}\n  {} ({})\n", op->signature(), op->doc, name(op->category)).c_str(), stdout);
    for (const AttributeDecl& attribute : op->attributes)
      std::fputs(fmt::format("  {}: {}{}\n", attribute.name, attribute.doc,
                             attribute.binding == Binding::Late ? " (may be computed by the model)" : "")
                     .c_str(),
                 stdout);
  });
}

}  // namespace tenon::cli
