#include "compiler/build_program.h"

#include <algorithm>
#include <ranges>

#include "compiler/control_flow.h"
#include "compiler/count_work.h"
#include "compiler/join_loops.h"
#include "compiler/reuse_in_place.h"
#include "ir/size_checks.h"
#include "loops/parallel_regions.h"
#include "ops/data.h"
#include "passes/passes.h"
#include "passes/target/compute_weights.h"
#include "passes/target/constant_pieces.h"
#include "passes/target/decompose_ops.h"

namespace tenon::compiler {

using loops::Kernel;
using loops::NamedKernel;
using lowering::BufferId;
using lowering::Group;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Pattern;
using lowering::Stage;
using runtime::AliasStep;
using runtime::Home;
using runtime::HostStep;
using runtime::KernelStep;
using runtime::Prepare;
using runtime::PrepareStep;
using runtime::Program;
using runtime::Slot;

namespace {

// Symbols that are the size of an input. What nothing reads may be anything.
std::set<std::string> known_sizes(const Graph& graph) {
  std::set<std::string> known;
  for (Value input : graph.inputs())
    if (input.use_count() > 0 && input.type().is_tensor() && input.shape().ranked())
      for (const Dim& dim : input.shape().dims())
        if (dim.is_symbol())
          known.insert(dim.symbols().front());
  return known;
}

bool follows_from(const Type& type, const std::set<std::string>& known) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked() || info(type.as_tensor().dtype).bytes == 0)
    return false;
  for (const Dim& dim : type.as_tensor().shape.dims()) {
    if (dim.is_unknown())
      return false;
    for (const std::string& symbol : dim.symbols())
      if (!known.contains(symbol))
        return false;
  }
  return true;
}

std::map<std::string, size_t> numbers_by_name(const std::vector<Slot>& slots) {
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < slots.size(); ++i)
    numbers.emplace(slots[i].name, i);
  return numbers;
}

// --- the prepare part ---

class PrepareBuilder {
 public:
  PrepareBuilder(const KernelGraph& graph, Program& program, const CompileNested& compile)
      : graph_(graph), program_(program), compile_(compile) {}

  void add(size_t slot) {
    const BufferId own = graph_.buffers.id_of(program_.slots[slot].name);
    const KernelBuffer& source = graph_.buffers[graph_.buffers[own].made_of().value_or(own)];
    PrepareStep step{.slot = slot,
                     .weights = {},
                     .dim = pieces_of(source.value)->dim,
                     .vnni_dim = source.vnni_dim,
                     .layout = graph_.buffers[own].layout};
    for (Node* holder : holders_of(source.value))
      step.weights.push_back(weight_of(*holder));
    program_.prepare.steps.push_back(std::move(step));
  }

  void finish() {
    for (const auto& [graph, wanted] : computed_) {
      if (!compile_)
        break;
      const std::unique_ptr<Graph> part = graph->graph().clone();
      const std::vector<Value> all = part->outputs();
      std::vector<Value> outputs;
      for (const auto& [output, weight] : wanted) {
        program_.prepare.weights[weight].program = program_.prepare.programs.size();
        program_.prepare.weights[weight].output = outputs.size();
        outputs.push_back(all[output]);
      }
      part->set_outputs(outputs);
      Journal journal;
      remove_dead(*part, journal);
      program_.prepare.programs.push_back(compile_(*part));
    }
    for (Node* holder : holders_)
      holder->give_up_elements();
  }

 private:
  size_t weight_of(Node& holder) {
    const auto [it, fresh] = weights_.emplace(&holder, program_.prepare.weights.size());
    if (!fresh)
      return it->second;
    holders_.push_back(&holder);
    const Literal& literal = *literal_of(holder);
    program_.prepare.weights.push_back({.name = holder.result().name(), .literal = literal});
    if (const ComputedWeight* computed = computed_weight(literal)) {
      const auto [found, first] = numbers_.emplace(computed->weights().get(), computed_.size());
      if (first)
        computed_.push_back({computed->weights(), {}});
      computed_[found->second].second.emplace_back(computed->output(), it->second);
    }
    return it->second;
  }

  const KernelGraph& graph_;
  Program& program_;
  const CompileNested& compile_;
  std::map<const Node*, size_t> weights_;
  std::vector<Node*> holders_;
  // The graphs that compute weights, and the results that are wanted of each: output and weight.
  std::map<const WeightsGraph*, size_t> numbers_;
  std::vector<std::pair<std::shared_ptr<const WeightsGraph>, std::vector<std::pair<size_t, size_t>>>>
      computed_;
};

// --- slots ---

class SlotBuilder {
 public:
  SlotBuilder(const Graph& graph, const FusedGraph& fused, Program& program)
      : graph_(graph), buffers_(fused.graph().buffers), fused_(fused), program_(program) {}

  // Returns the slots whose elements kernels read.
  std::vector<size_t> run() {
    const std::set<std::string> known = known_sizes(graph_);
    int64_t number = 0;
    for (Value input : graph_.inputs())
      add({.name = name_of(input), .type = input.type(), .home = Home::Input, .number = number++});
    for (const Node* node : graph_.nodes())
      for (Value value : node->results())
        add_value(value, known);
    for (BufferId id : buffers_of_no_value())
      add_buffer(id, known);
    for (const KernelNode& node : fused_.graph().nodes)
      if (node.kind == KernelNode::Kind::Alias)
        add_alias(node);
    add_outputs();
    return std::move(constants_);
  }

 private:
  void add(Slot slot) {
    by_name_.emplace(slot.name, program_.slots.size());
    program_.slots.push_back(std::move(slot));
  }
  const std::string& name_of(Value value) const { return buffers_[fused_.graph().buffer_of(value)].name(); }
  size_t slot_of(Value value) const { return by_name_.at(name_of(value)); }

  // By name.
  std::vector<BufferId> buffers_of_no_value() const {
    std::map<std::string, BufferId> found;
    for (const KernelBuffer& buffer : buffers_)
      if (!buffer.value)
        found.emplace(buffer.name(), buffers_.id_of(buffer.name()));
    const auto ids = std::views::values(found);
    return {ids.begin(), ids.end()};
  }

  void add_value(Value value, const std::set<std::string>& known) {
    const BufferId id = fused_.graph().buffer_of(value);
    Slot slot{.name = name_of(value), .type = buffers_[id].type()};  // as it lies in memory
    if (is_constant(value)) {
      slot.home = Home::Constant;
      if (fused_.is_read(id))  // one number repeated, which stands in the code, needs no memory
        constants_.push_back(program_.slots.size());
    } else if (!follows_from(value.type(), known)) {
      slot.home = Home::Own;
    }
    add(std::move(slot));
  }

  void add_buffer(BufferId id, const std::set<std::string>& known) {
    const KernelBuffer& buffer = buffers_[id];
    Slot slot{.name = buffer.name(), .type = buffer.type()};
    if (buffer.home == lowering::Home::Constant) {
      if (!fused_.is_read(id))
        return;
      slot.home = Home::Constant;
      constants_.push_back(program_.slots.size());
    } else if (!follows_from(slot.type, known)) {
      slot.home = Home::Own;
    }
    add(std::move(slot));
  }

  void add_alias(const KernelNode& node) {
    Slot& to = program_.slots[by_name_.at(buffers_[node.results.front()].name())];
    const size_t from = by_name_.at(buffers_[node.operands.front()].name());
    if (to.home == Home::Own)
      return;  // made when it is known how large it is
    if (program_.slots[from].home == Home::Own) {
      to.home = Home::Own;
      return;
    }
    to.alias = from;
    to.home = program_.slots[from].home;
    to.number = program_.slots[from].number;
  }

  void add_outputs() {
    int64_t number = 0;
    for (Value output : graph_.outputs()) {
      program_.outputs.push_back(slot_of(output));
      Slot& slot = program_.slots[program_.outputs.back()];
      if (slot.home == Home::Arena && !slot.alias)
        slot.home = Home::Output;
      if (slot.home == Home::Output)
        slot.number = number;
      ++number;
    }
  }

  const Graph& graph_;
  const lowering::BufferTable& buffers_;
  const FusedGraph& fused_;
  Program& program_;
  std::map<std::string, size_t> by_name_;
  std::vector<size_t> constants_;
};

// --- steps ---

class StepBuilder {
 public:
  StepBuilder(Program& program, const FusedGraph& fused, const Kernels& kernels,
              const CompileContext& context, const CompileNested& compile)
      : program_(program),
        fused_(fused),
        kernels_(kernels),
        context_(context),
        compile_(compile),
        by_name_(numbers_by_name(program.slots)) {}

  void run() {
    std::vector<const Kernel*> kernels;  // of the steps
    for (size_t i = 0; i < fused_.groups().size(); ++i) {
      const NamedKernel* named = kernels_.find(i);
      if (named != nullptr)
        add_kernel(i, *named);
      else
        add_opaque(fused_.graph().nodes[fused_.groups()[i].nodes.front()]);
      kernels.resize(program_.steps.size(), named == nullptr ? nullptr : &named->kernel);
    }
    reuse_in_place(program_.slots, program_.steps, kernels, program_.outputs);
    if (!context_.target.gpu)
      program_.overwritable = overwritable_inputs(program_.slots, program_.steps, kernels, program_.outputs);
  }

 private:
  size_t slot_of(Value value) const {
    const KernelGraph& graph = fused_.graph();
    return by_name_.at(graph.buffers[graph.buffer_of(value)].name());
  }

  size_t slot_of(BufferId buffer) const { return by_name_.at(fused_.graph().buffers[buffer].name()); }

  AliasStep alias_step(const KernelNode& alias) const {
    AliasStep step{.op = "view",
                   .described = runtime::describe_sources(alias.sources),
                   .sources = alias.sources,
                   .from = slot_of(alias.operands.front()),
                   .to = slot_of(alias.results.front())};
    if (const Node* node = alias.node) {
      step.op = node->op().name;
      step.described = node->describe();
      step.sources = labels_of(*node);
    }
    return step;
  }

  void add_opaque(const KernelNode& called) {
    if (called.kind == KernelNode::Kind::Alias) {
      program_.steps.emplace_back(alias_step(called));
      return;
    }
    const Node& node = *called.node;
    HostStep step{.op = std::string(node.op().name),
                  .described = node.describe(),
                  .sources = labels_of(node),
                  .call = std::make_shared<OpCall>(node)};
    for (const std::string_view region : node.op().regions)
      if (compile_)
        step.regions.emplace(region, compile_(node.region(region)));
    if (!step.regions.empty())
      step.control = control_flow_of(node);
    for (Value operand : node.operands())
      step.reads.push_back(slot_of(operand));
    for (Value result : node.results())
      step.writes.push_back(slot_of(result));
    add_host_step(std::move(step), program_.slots, program_.steps);
  }

  void add_kernel(size_t group, const NamedKernel& named) {
    KernelStep step{.code = kernels_.number_of(group),
                    .regions = {},
                    .reads = {},
                    .writes = {},
                    .sizes = {},
                    .work = 1,
                    .flushes = flushes(fused_.groups()[group]),
                    .is_tuned = is_tuned(group),
                    .sources = named.sources,
                    .refusing = refusing(group, named.sources)};
    for (const std::string& name : named.reads)
      step.reads.push_back(by_name_.at(name));
    for (const std::string& name : named.writes)
      step.writes.push_back(by_name_.at(name));
    std::map<std::string, Dim> sizes;
    for (size_t i = 0; i < named.symbols.size(); ++i) {
      step.sizes.push_back(Dim::symbol(named.symbols[i]));
      sizes.emplace(named.kernel.size_symbols()[i], step.sizes.back());
    }
    const std::vector<loops::ParallelRegion> regions = loops::parallel_regions_of(named.kernel);
    for (const loops::ParallelRegion& region : regions)
      step.regions.push_back(
          {region.iterations.substitute(sizes), context_.backend->scratch_bytes(region).substitute(sizes)});
    step.work = count_work(named.kernel, regions, sizes);
    program_.steps.emplace_back(std::move(step));
  }

  // Products take most of the time, and what a mask leaves of a softmax is often subnormal.
  bool flushes(const Group& group) const {
    return context_.numerics != NumericsBudget::Strict &&
           (group.pattern == Pattern::Contract || group.pattern == Pattern::FusedAttention ||
            !group.parts.empty());
  }

  bool is_tuned(size_t group) const {
    const std::optional<Stage> stage = fused_.contraction_of(group);
    return stage && stage->contraction && context_.tuning.contains(stage->contraction->key);
  }

  // Those of these nodes that refuse elements; all of them where that is not known.
  std::vector<std::string> refusing(size_t group, const std::vector<std::string>& sources) const {
    std::set<std::string> refusing;
    for (const Stage& stage : fused_.stages_of(group))
      refusing.insert(stage.refusing.begin(), stage.refusing.end());
    std::vector<std::string> found;
    std::ranges::copy_if(sources, std::back_inserter(found),
                         [&](const std::string& source) { return refusing.contains(source); });
    return found.empty() ? sources : found;
  }

  Program& program_;
  const FusedGraph& fused_;
  const Kernels& kernels_;
  const CompileContext& context_;
  const CompileNested& compile_;
  const std::map<std::string, size_t> by_name_;
};

}  // namespace

std::shared_ptr<Program> build_slots(Graph& graph, const FusedGraph& fused, const CompileContext& context,
                                     const CompileNested& compile) {
  auto program = std::make_shared<Program>();
  program->name = graph.name();
  program->target = context.target;
  program->inputs = inputs_of(graph);
  program->output_names = graph.output_names();
  if (auto checks = std::make_shared<SizeChecks>(graph); !checks->empty())
    program->size_checks = std::move(checks);
  PrepareBuilder prepare(fused.graph(), *program, compile);
  for (size_t slot : SlotBuilder(graph, fused, *program).run())
    prepare.add(slot);
  prepare.finish();
  return program;
}

void build_steps(Program& program, const FusedGraph& fused, const Kernels& kernels,
                 const CompileContext& context, const CompileNested& compile) {
  StepBuilder(program, fused, kernels, context, compile).run();
}

}  // namespace tenon::compiler
