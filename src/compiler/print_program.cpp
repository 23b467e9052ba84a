#include "compiler/print_program.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "ir/print.h"
#include "lowering/lower_graph.h"
#include "passes/target/decompose_ops.h"

namespace tenon::compiler {

using runtime::AliasStep;
using runtime::Home;
using runtime::HostStep;
using runtime::KernelStep;
using runtime::LoopsStep;
using runtime::MemoryPlan;
using runtime::Program;
using runtime::Slot;
using runtime::Step;

namespace {

// What the user calls these nodes, behind what they became.
std::string comment(const std::vector<std::string>& sources) {
  std::vector<std::string> quoted;
  for (const std::string& source : sources)
    quoted.push_back(quote(source));
  return fmt::format("// {}", fmt::join(quoted, ", "));
}

class Printer {
 public:
  Printer(const Program& program, const Bindings& sizes)
      : program_(program), sizes_(sizes), plan_(program.memory_plan(sizes)) {}

  std::string run() {
    text_ = fmt::format("program {}{} {{\n", program_.graph().name(), where());
    for (size_t slot : used_slots())
      text_ += fmt::format("  {}: {} {}\n", name(slot), program_.slots()[slot].type, place(slot));
    for (const Step& step : program_.steps())
      std::visit([&](const auto& each) { print(each); }, step);
    text_ += fmt::format("  return {}\n}}\n", names(program_.outputs()));
    return text_ + fmt::format("arena: {}, of which {} are in use at one time\n",
                               format_bytes(static_cast<double>(plan_.bytes)),
                               format_bytes(static_cast<double>(plan_.lower_bound)));
  }

 private:
  // The sizes that the places hold for.
  std::string where() const {
    std::vector<std::string> texts;
    for (const auto& [symbol, size] : sizes_)
      texts.push_back(fmt::format("{} = {}", symbol, size));
    return texts.empty() ? "" : fmt::format(" where {}", fmt::join(texts, ", "));
  }

  const std::string& name(size_t slot) const { return program_.slots()[slot].name; }

  std::string names(const std::vector<size_t>& slots) const {
    std::vector<std::string> names;
    for (size_t slot : slots)
      names.push_back(name(slot));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  // Fused values have slots too, which no step names.
  std::set<size_t> used_slots() const {
    std::set<size_t> used(program_.outputs().begin(), program_.outputs().end());
    for (const Step& step : program_.steps())
      std::visit([&](const auto& each) { add_slots(each, used); }, step);
    return used;
  }

  static void add_slots(const AliasStep& alias, std::set<size_t>& slots) {
    slots.insert({alias.from, alias.to});
  }
  template <class Call>
  static void add_slots(const Call& call, std::set<size_t>& slots) {
    slots.insert(call.reads.begin(), call.reads.end());
    slots.insert(call.writes.begin(), call.writes.end());
  }

  std::string place(size_t number) const {
    const Slot& slot = program_.slots()[number];
    if (slot.alias)
      return (slot.type == program_.slots()[*slot.alias].type ? "in place of " : "view of ") +
             name(*slot.alias);
    switch (slot.home) {
      case Home::Input:
        return "input " + quote(program_.graph().input(slot.number).name());
      case Home::Constant:
        return "constant";
      case Home::Output:
        return "output " + quote(program_.graph().output_names()[static_cast<size_t>(slot.number)]);
      case Home::Arena:
        return fmt::format("arena from {}", plan_.offsets[number]);
      case Home::Own:
        return "allocated when its size is known";
    }
    return "";
  }

  void print(const KernelStep& step) {
    text_ += fmt::format("  {} = {}({})  {}\n", names(step.writes), step.name, names(step.reads),
                         comment(step.sources));
  }

  void print(const HostStep& step) {
    text_ += fmt::format("  {} = host {}({})  {}\n", names(step.writes), step.node->op().name,
                         names(step.reads), comment(labels_of(*step.node)));
  }

  void print(const LoopsStep& step) {
    text_ += "  beside each other {\n";
    for (const HostStep& loop : step.loops) {
      text_ += "  ";
      print(loop);
    }
    text_ += "  }\n";
  }

  void print(const AliasStep& step) {
    text_ += fmt::format("  {} = view({})\n", name(step.to), name(step.from));
  }

  const Program& program_;
  const Bindings& sizes_;
  MemoryPlan plan_;
  std::string text_;
};

}  // namespace

std::string print_kernels(const Program& program, std::vector<loops::Kernel> kernels) {
  std::vector<std::string> order;
  std::map<std::string, std::string> comments, nests;  // by the names of kernels
  size_t next = 0;
  for (const Step& step : program.steps()) {
    const auto* call = std::get_if<KernelStep>(&step);
    if (call == nullptr)
      continue;
    CHECK(next < kernels.size(), "the program calls more kernels than it has");
    loops::Kernel& kernel = kernels[next++];
    kernel.name = call->name;
    comments[call->name] += comment(call->sources) + "\n";
    if (nests.emplace(call->name, loops::print(kernel)).second)
      order.push_back(call->name);
  }
  std::vector<std::string> texts;
  for (const std::string& name : order)
    texts.push_back(comments.at(name) + nests.at(name));
  return fmt::format("{}", fmt::join(texts, "\n"));
}

std::string print_program(const Program& program, const Bindings& sizes) {
  return Printer(program, sizes).run();
}

}  // namespace tenon::compiler
