#include "compiler/print_program.h"

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "ir/print.h"
#include "passes/target/decompose_ops.h"
#include "runtime/execution_plan.h"

namespace tenon::compiler {

using runtime::AliasStep;
using runtime::CopyStep;
using runtime::Home;
using runtime::HostStep;
using runtime::KernelStep;
using runtime::Lifetime;
using runtime::LoopsStep;
using runtime::MemoryPlan;
using runtime::PrepareStep;
using runtime::Program;
using runtime::Slot;
using runtime::Step;
using runtime::Weight;

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
      : program_(program), sizes_(sizes), plan_(plan_memory(program, sizes)) {
    const std::vector<std::optional<Lifetime>> lifetimes =
        lifetimes_of(program.slots, program.steps, program.outputs);
    for (size_t i = 0; i < program.slots.size(); ++i)
      if (lifetimes[i]) {
        is_used_.insert(i);
        if (is_allocated(program.slots[i])) {
          allocated_at_[lifetimes[i]->first].push_back(i);
          freed_after_[lifetimes[i]->last].push_back(i);
        }
      }
  }

  std::string run() {
    text_ = fmt::format("program {}{} {{\n", program_.name, where());
    for (size_t slot : is_used_)
      if (!is_allocated(program_.slots[slot]))
        text_ += fmt::format("  {}: {} {}\n", name(slot), program_.slots[slot].type, place(slot));
    print_prepare();
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      for (size_t slot : allocated_at_[static_cast<int64_t>(i)])
        text_ += fmt::format("  alloc {}: {} {}\n", name(slot), program_.slots[slot].type, place(slot));
      std::visit([&](const auto& each) { print(each); }, program_.steps[i]);
      for (size_t slot : freed_after_[static_cast<int64_t>(i)])
        text_ += fmt::format("  dealloc {}\n", name(slot));
    }
    text_ += fmt::format("  return {}\n}}\n", names(program_.outputs));
    return text_ + fmt::format("arena: {}, of which {} are in use at one time\n",
                               format_bytes(static_cast<double>(plan_.bytes)),
                               format_bytes(static_cast<double>(plan_.lower_bound)));
  }

 private:
  // Those with memory from one step to another.
  static bool is_allocated(const Slot& slot) {
    return !slot.alias && (slot.home == Home::Arena || slot.home == Home::Own);
  }

  // The sizes that the places hold for.
  std::string where() const {
    std::vector<std::string> texts;
    for (const auto& [symbol, size] : sizes_)
      texts.push_back(fmt::format("{} = {}", symbol, size));
    return texts.empty() ? "" : fmt::format(" where {}", fmt::join(texts, ", "));
  }

  const std::string& name(size_t slot) const { return program_.slots[slot].name; }

  std::string names(const std::vector<size_t>& slots) const {
    std::vector<std::string> names;
    for (size_t slot : slots)
      names.push_back(name(slot));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::string place(size_t number) const {
    const Slot& slot = program_.slots[number];
    if (slot.alias)
      return (slot.type == program_.slots[*slot.alias].type ? "in place of " : "view of ") +
             name(*slot.alias);
    switch (slot.home) {
      case Home::Input:
        return "input " + quote(program_.inputs[static_cast<size_t>(slot.number)].name);
      case Home::Constant:
        return "constant";
      case Home::Output:
        return "output " + quote(program_.output_names[static_cast<size_t>(slot.number)]);
      case Home::Arena:
        return fmt::format("at {}", plan_.offsets[number]);
      case Home::Own:
        return "when its size is known";
    }
    return "";
  }

  // Constants that are more than a weight as it is.
  void print_prepare() {
    std::string text;
    for (const PrepareStep& step : program_.prepare.steps) {
      if (!is_used_.contains(step.slot))
        continue;
      std::vector<std::string> weights;
      bool is_computed = false;
      for (size_t number : step.weights) {
        const Weight& weight = program_.prepare.weights[number];
        weights.push_back(weight.program        ? fmt::format("weights{}.{}", *weight.program, weight.output)
                          : weight.name.empty() ? fmt::format("weight{}", number)
                                                : quote(weight.name));
        is_computed = is_computed || weight.program;
      }
      const std::string how = describe_packing(step);
      if (!how.empty() || is_computed)
        text += fmt::format("    {} = {}({})\n", name(step.slot), how.empty() ? "computed" : how,
                            fmt::join(weights, ", "));
    }
    if (!text.empty())
      text_ += fmt::format("  prepare {{\n{}  }}\n", text);
  }

  static std::string describe_packing(const PrepareStep& step) {
    const std::string how = describe(step);
    if (!step.vnni_dim)
      return how;
    return fmt::format("{}{}vnni_pack[{}]", how, how.empty() ? "" : " of ", *step.vnni_dim);
  }

  static std::string describe(const PrepareStep& step) {
    if (const auto* permuted = std::get_if<lowering::PermutedLayout>(&step.layout))
      return fmt::format("permute[{}]", fmt::join(permuted->order, ","));
    if (const auto* packed = std::get_if<lowering::PackedWeights>(&step.layout))
      return fmt::format("pack_b[{} lanes{}]", packed->order.lanes, packed->split ? ", bf16x3" : "");
    if (const auto* winograd = std::get_if<lowering::TransformedWeights>(&step.layout))
      return fmt::format("winograd_weights[{0} x {0}]", winograd->tile);
    return step.weights.size() > 1 ? fmt::format("concat[{}]", step.dim) : "";
  }

  void print(const KernelStep& step) {
    text_ += fmt::format("  {} = {}({})  {}\n", names(step.writes), step.name(), names(step.reads),
                         comment(step.sources));
  }

  void print(const HostStep& step) {
    text_ += fmt::format("  {} = host {}({})  {}\n", names(step.writes), step.op, names(step.reads),
                         comment(step.sources));
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

  void print(const CopyStep& step) {
    text_ += fmt::format("  copy {} to the {}\n", name(step.slot),
                         step.to == CopyStep::To::Device ? "device" : "host");
  }

  const Program& program_;
  const Bindings& sizes_;
  MemoryPlan plan_;
  std::set<size_t> is_used_;  // fused values have slots too, which no step names
  std::map<int64_t, std::vector<size_t>> allocated_at_, freed_after_;  // slots, by steps
  std::string text_;
};

}  // namespace

std::string print_kernels(const Program& program, std::vector<loops::Kernel> kernels) {
  std::vector<std::string> order;
  std::map<std::string, std::string> comments, nests;  // by the names of kernels
  size_t next = 0;
  for (const Step& step : program.steps) {
    const auto* call = std::get_if<KernelStep>(&step);
    if (call == nullptr)
      continue;
    CHECK(next < kernels.size(), "the program calls more kernels than it has");
    loops::Kernel& kernel = kernels[next++];
    kernel.name = call->name();
    comments[call->name()] += comment(call->sources) + "\n";
    if (nests.emplace(call->name(), loops::print(kernel)).second)
      order.push_back(call->name());
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
