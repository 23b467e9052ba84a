#include "compiler/compile.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <ranges>

#include "base/error.h"
#include "base/run_all.h"
#include "codegen/generate.h"
#include "compiler/count_work.h"
#include "compiler/fuse_graph.h"
#include "compiler/join_loops.h"
#include "compiler/make_constants.h"
#include "compiler/reuse_in_place.h"
#include "compiler/target_graph.h"
#include "loops/canonical_names.h"
#include "loops/parallel_regions.h"
#include "ops/data.h"
#include "ops/lower.h"
#include "passes/target/constant_pieces.h"
#include "passes/target/decompose_ops.h"
#include "schedule/cpu/nest.h"
#include "schedule/cpu/overlapped_tiles.h"

namespace tenon::compiler {

using fusion::cost_of;
using fusion::Missed;
using loops::Buffer;
using loops::Kernel;
using loops::Scalar;
using loops::Statement;
using lowering::ContractionChoices;
using lowering::Group;
using lowering::lower_graph;
using lowering::LoweredGraph;
using lowering::Opaque;
using lowering::Pattern;
using lowering::Stage;
using runtime::AliasStep;
using runtime::describe_sources;
using runtime::Home;
using runtime::HostStep;
using runtime::KernelFunction;
using runtime::KernelStep;
using runtime::Program;
using runtime::Slot;
using runtime::Step;
using schedule::build_nest;
using schedule::build_overlapped_tiles;
using schedule::unscheduled_nest;

namespace {

// Symbols that are the size of an input.
void collect_symbols(const Type& type, std::set<std::string>& symbols) {
  if (type.is_tensor() && type.as_tensor().shape.ranked())
    for (const Dim& dim : type.as_tensor().shape.dims())
      if (dim.is_symbol())
        symbols.insert(dim.symbols().front());
}

// Whether a program for inputs of known sizes is much faster, as it can use Winograd.
bool gains_by_sizes(const Graph& graph) {
  std::set<std::string> known;
  for (Value input : graph.inputs())
    if (input.use_count() > 0)  // what nothing reads is not asked for its sizes
      collect_symbols(input.type(), known);
  const auto would_be_known = [&](const Dim& dim) {
    return !dim.is_constant() && !dim.is_unknown() &&
           std::ranges::all_of(dim.symbols(), [&](const std::string& each) { return known.contains(each); });
  };
  const std::set<std::string_view> convolutions{"conv", "conv_bytes", "conv_transpose", "conv_words"};
  return std::ranges::any_of(graph.nodes(), [&](const Node* node) {
    return convolutions.contains(node->op().name) && node->in("x").shape().ranked() &&
           std::ranges::any_of(node->in("x").shape().dims() | std::views::drop(2), would_be_known);
  });
}

class Compiler {
 public:
  Compiler(const Graph& graph, const CompileContext& context) : context_(context), target_(context.target) {
    if (context.threads != 0)
      target_.cores = context.threads;
    Journal journal(context.numerics);
    graph_ = make_target_graph(graph, context, journal);
    LoweredGraph lowered = lower_graph(*graph_);
    std::set<std::string> kept;
    for (Value output : graph_->outputs())
      kept.insert(lowered.names.at(output.data()));
    fused_.emplace(std::move(lowered), std::move(kept),
                   KernelGraphContext{.target = context_.target,
                                      .threads = target_.cores,
                                      .numerics = context_.numerics,
                                      .fuse = context_.fuse,
                                      .tuning = context_.tuning});
  }

  std::vector<Kernel> kernels() {
    build();
    std::vector<Kernel> kernels;
    for (const auto& [group, named] : kernels_)
      kernels.push_back(named.kernel);
    return kernels;
  }

  std::vector<Kernel> unscheduled_kernels() {
    build();
    std::vector<Kernel> kernels;
    for (const auto& [group, named] : kernels_) {
      std::vector<Stage> stages = fused_->stages_of(group);
      for (Stage& stage : stages)
        if (stage.as_written)
          stage.definition = *stage.as_written;
      kernels.push_back(stages.empty()
                            ? named.kernel
                            : canonicalize_names(unscheduled_nest("kernel", stages, fused_->groups()[group],
                                                                  fused_->needed_outside(group),
                                                                  lowered().buffers, target_))
                                  .kernel);
    }
    return kernels;
  }

  FusionReport fusion() {
    build();
    FusionReport report{.before = fused_->costs_before(), .after = {}, .edges = {}};
    std::map<size_t, size_t> kernel_of_item;
    std::map<std::string, size_t> maker;
    for (const auto& [group, named] : kernels_) {
      for (size_t item : fused_->groups()[group].items) {
        kernel_of_item.emplace(item, report.after.size());
        for (const std::string& buffer : lowered().items[item].writes)
          maker.emplace(buffer, report.after.size());
      }
      report.after.push_back(
          {named.sources, cost_of(fused_->stages_of(group), fused_->needed_outside(group), lowered().buffers),
           fused_->contraction_of(group)});
    }
    std::set<std::pair<std::string, size_t>> known;  // several parts of a kernel may read one buffer
    for (const Missed& missed : fused_->missed())
      if (const size_t from = maker.at(missed.buffer), to = kernel_of_item.at(missed.reader);
          from != to && known.emplace(missed.buffer, to).second)
        report.edges.push_back({from, to, lowered().buffers.at(missed.buffer), missed.reason});
    return report;
  }

  std::unique_ptr<Program> run() {
    make_slots();
    // Memory is what large constants wait for, and the processor is what code waits for.
    std::future<void> constants = std::async(
        std::launch::async, [&] { make_constants(slots_, constants_, lowered(), context_.target); });
    build();
    generate();
    constants.get();
    std::vector<const Kernel*> kernels;  // of the steps
    for (size_t i = 0; i < fused_->groups().size(); ++i) {
      add_step(i);
      kernels.resize(steps_.size(), kernels_.contains(i) ? &kernels_.at(i).kernel : nullptr);
    }
    std::vector<size_t> outputs = output_slots();
    reuse_in_place(slots_, steps_, kernels, outputs);
    return std::make_unique<Program>(std::move(graph_), std::move(slots_), std::move(steps_),
                                     std::move(outputs), code_);
  }

  ScheduledGraph schedule() {
    make_slots();
    make_constants(slots_, constants_, lowered(), context_.target);
    build();
    number_kernels();
    for (size_t i = 0; i < fused_->groups().size(); ++i)
      add_step(i);
    std::vector<size_t> outputs = output_slots();
    return {std::move(graph_), std::move(slots_), std::move(steps_), kernels(), std::move(outputs)};
  }

 private:
  const LoweredGraph& lowered() const { return fused_->lowered(); }

  // For programs besides the one whose kernels are told of.
  CompileContext quiet_context() const {
    CompileContext context = context_;
    context.before_kernel = nullptr;
    return context;
  }

  // --- which items become one kernel ---

  void build() {
    if (is_built_)
      return;
    for (size_t i = 0; i < fused_->groups().size(); ++i)
      build(i);
    is_built_ = true;
  }

  void build(size_t group) {
    const size_t first = fused_->groups()[group].items.front();
    if (!lowered().items[first].stage) {
      const Opaque& opaque = lowered().opaque.at(first);
      if (opaque.kind == Opaque::Kind::Nest)
        build_nest_of_node(group, opaque);
      return;
    }
    const std::vector<Stage> stages = fused_->stages_of(group);
    std::vector<std::string> sources;
    for (const Stage& stage : stages)
      for (const std::string& source : stage.sources)
        if (std::find(sources.begin(), sources.end(), source) == sources.end())
          sources.push_back(source);
    const Group& all = fused_->groups()[group];
    loops::NamedKernel named = canonicalize_names(
        all.parts.empty()
            ? build_nest("kernel", stages, all, fused_->needed_outside(group), lowered().buffers, target_)
            : build_overlapped_tiles("kernel", stages, all, lowered().buffers, target_));
    named.sources = std::move(sources);
    kernels_.emplace(group, std::move(named));
  }

  void build_nest_of_node(size_t group, const Opaque& opaque) {
    const Node& node = *opaque.node;
    Kernel kernel{.name = "kernel", .inputs = {}, .outputs = {}, .combines = {}, .body = opaque.nest};
    std::vector<std::string> reads, writes;
    for (int64_t i = 0; i < node.operand_count(); ++i) {
      Buffer buffer = lowered().buffers.at(lowered().names.at(node.operand(i).data()));
      reads.push_back(buffer.name);
      buffer.name = LowerContext::operand_name(i);
      kernel.inputs.push_back(std::move(buffer));
    }
    for (int64_t i = 0; i < node.result_count(); ++i) {
      Buffer buffer = lowered().buffers.at(lowered().names.at(node.result(i).data()));
      writes.push_back(buffer.name);
      buffer.name = LowerContext::result_name(i);
      kernel.outputs.push_back(std::move(buffer));
    }
    loops::NamedKernel named = canonicalize_names(std::move(kernel));
    named.reads = std::move(reads);
    named.writes = std::move(writes);
    named.sources = labels_of(node);
    kernels_.emplace(group, std::move(named));
  }

  // --- slots ---

  void make_slots() {
    std::set<std::string> known;  // sizes that the inputs have by themselves
    for (Value input : graph_->inputs())
      if (input.use_count() > 0)  // what nothing reads may be anything
        collect_symbols(input.type(), known);
    int64_t number = 0;
    for (Value input : graph_->inputs())
      add_slot({.name = lowered().names.at(input.data()),
                .type = input.type(),
                .home = Home::Input,
                .number = number++});
    for (const Node* node : graph_->nodes())
      for (Value value : node->results()) {
        Slot slot{.name = lowered().names.at(value.data()), .type = value.type()};
        if (const auto buffer = lowered().buffers.find(slot.name); buffer != lowered().buffers.end())
          slot.type = Type::tensor(buffer->second.dtype, buffer->second.sizes);  // as it lies in memory
        if (is_constant(value)) {
          slot.home = Home::Constant;
          if (fused_->is_read(slot.name))  // one number repeated, which stands in the code, needs no memory
            constants_.push_back(slots_.size());
        } else if (!follows_from(value.type(), known)) {
          slot.home = Home::Own;
        }
        add_slot(std::move(slot));
      }
    for (const auto& [name, buffer] : lowered().buffers)
      if (!slots_by_name_.contains(name)) {
        const Type type = Type::tensor(buffer.dtype, buffer.sizes);
        if (lowered().transformed.contains(name) || lowered().packed.contains(name)) {
          constants_.push_back(slots_.size());
          add_slot({.name = name, .type = type, .home = Home::Constant});
          continue;
        }
        add_slot({.name = name, .type = type, .home = follows_from(type, known) ? Home::Arena : Home::Own});
      }
    for (const auto& [item, opaque] : lowered().opaque)
      if (opaque.kind == Opaque::Kind::Alias)
        add_alias(*opaque.node);
    number = 0;
    for (Value output : graph_->outputs()) {
      Slot& slot = slots_[slots_by_name_.at(lowered().names.at(output.data()))];
      if (slot.home == Home::Arena && !slot.alias)
        slot.home = Home::Output;
      if (slot.home == Home::Output)
        slot.number = number;
      ++number;
    }
  }

  void add_alias(const Node& node) {
    Slot& to = slots_[slots_by_name_.at(lowered().names.at(node.result().data()))];
    const size_t from = slots_by_name_.at(lowered().names.at(node.operand(0).data()));
    if (to.home == Home::Own)
      return;  // made when it is known how large it is
    if (slots_[from].home == Home::Own) {
      to.home = Home::Own;
      return;
    }
    to.alias = from;
    to.home = slots_[from].home;
    to.number = slots_[from].number;
  }

  void add_slot(Slot slot) {
    slots_by_name_.emplace(slot.name, slots_.size());
    slots_.push_back(std::move(slot));
  }

  std::vector<size_t> output_slots() const {
    std::vector<size_t> outputs;
    for (Value output : graph_->outputs())
      outputs.push_back(slots_by_name_.at(lowered().names.at(output.data())));
    return outputs;
  }

  static bool follows_from(const Type& type, const std::set<std::string>& known) {
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

  // --- code ---

  struct Code {
    codegen::Jit jit;
  };

  void tell_of_kernel(size_t all) {
    const std::lock_guard lock(mutex_);
    if (context_.before_kernel)
      context_.before_kernel(static_cast<int64_t>(all));
  }

  // Equal kernels share a number. Returns the first of each.
  std::vector<const loops::NamedKernel*> number_kernels() {
    std::map<std::string, size_t> distinct;
    std::vector<const loops::NamedKernel*> chosen;
    for (const auto& [group, named] : kernels_) {
      const auto [it, fresh] = distinct.emplace(loops::print(named.kernel), chosen.size());
      if (fresh)
        chosen.push_back(&named);
      code_of_group_[group] = it->second;
    }
    return chosen;
  }

  // Equal kernels are compiled once, and all cores take part.
  void generate() {
    const std::vector<const loops::NamedKernel*> chosen = number_kernels();
    std::vector<std::string> objects(chosen.size());
    run_all(chosen.size(), context_.target.cores, [&](size_t i) {
      tell_of_kernel(chosen.size());
      objects[i] = with_context(
          [&] { return describe_sources(chosen[i]->sources); },
          [&] { return codegen::generate_object(chosen[i]->kernel, context_.target, context_.cache); });
    });
    auto code = std::make_shared<Code>();
    for (size_t i = 0; i < chosen.size(); ++i)
      functions_.push_back(code->jit.load(objects[i], loops::parallel_regions_of(chosen[i]->kernel).size()));
    code_ = std::move(code);
  }

  // --- steps ---

  void add_step(size_t group) {
    if (const auto kernel = kernels_.find(group); kernel != kernels_.end())
      return add_kernel(group, kernel->second);
    const size_t item = fused_->groups()[group].items.front();
    const Opaque& opaque = lowered().opaque.at(item);
    const Node& node = *opaque.node;
    const auto slot = [&](Value value) { return slots_by_name_.at(lowered().names.at(value.data())); };
    if (opaque.kind == Opaque::Kind::Alias) {
      steps_.emplace_back(AliasStep{&node, slot(node.operand(0)), slot(node.result())});
      return;
    }
    HostStep step{.node = &node, .reads = {}, .writes = {}, .regions = {}};
    if (code_ != nullptr)
      for (const std::string_view region : node.op().regions)
        step.regions.emplace(region, Compiler(node.region(region), quiet_context()).run());
    for (Value operand : node.operands())
      step.reads.push_back(slot(operand));
    for (Value result : node.results())
      step.writes.push_back(slot(result));
    add_host_step(std::move(step), slots_, steps_);
  }

  void add_kernel(size_t group, const loops::NamedKernel& named) {
    KernelStep step{.name = fmt::format("kernel{}", code_of_group_.at(group)),
                    .regions = {},
                    .reads = {},
                    .writes = {},
                    .sizes = {},
                    .work = 1,
                    .flushes = flushes(fused_->groups()[group]),
                    .is_tuned = is_tuned(group),
                    .sources = named.sources,
                    .refusing = refusing(named.sources)};
    for (const std::string& name : named.reads)
      step.reads.push_back(slots_by_name_.at(name));
    for (const std::string& name : named.writes)
      step.writes.push_back(slots_by_name_.at(name));
    std::map<std::string, Dim> sizes;
    for (size_t i = 0; i < named.symbols.size(); ++i) {
      step.sizes.push_back(Dim::symbol(named.symbols[i]));
      sizes.emplace(named.kernel.size_symbols()[i], step.sizes.back());
    }
    const std::vector<loops::ParallelRegion> regions = loops::parallel_regions_of(named.kernel);
    for (size_t i = 0; i < regions.size(); ++i)
      step.regions.push_back({code_ == nullptr ? nullptr : functions_[code_of_group_.at(group)][i],
                              regions[i].iterations.substitute(sizes),
                              loops::scratch_bytes(regions[i]).substitute(sizes)});
    step.work = count_work(named.kernel, regions, sizes);
    steps_.emplace_back(std::move(step));
  }

  // Products take most of the time, and what a mask leaves of a softmax is often subnormal.
  bool flushes(const Group& group) const {
    return context_.numerics != NumericsBudget::Strict &&
           (group.pattern == Pattern::Contract || group.pattern == Pattern::FusedAttention ||
            !group.parts.empty());
  }

  bool is_tuned(size_t group) const {
    const std::optional<Stage> stage = fused_->contraction_of(group);
    return stage && context_.tuning.contains(stage->contraction->key);
  }

  // Those of these nodes that refuse elements; all of them where that is not known.
  std::vector<std::string> refusing(const std::vector<std::string>& sources) const {
    std::vector<std::string> found;
    std::ranges::copy_if(sources, std::back_inserter(found),
                         [&](const std::string& source) { return lowered().refusing.contains(source); });
    return found.empty() ? sources : found;
  }

  CompileContext context_;
  // With one core per thread, for partitioning. Algorithms do not depend on their number, so results are the
  // same bit by bit.
  Target target_;
  std::unique_ptr<Graph> graph_;
  std::optional<FusedGraph> fused_;
  std::map<size_t, loops::NamedKernel> kernels_;  // by group
  bool is_built_ = false;
  std::map<size_t, size_t> code_of_group_;
  std::vector<std::vector<KernelFunction>> functions_;
  std::shared_ptr<const void> code_;  // null until it is generated
  std::vector<Slot> slots_;
  std::map<std::string, size_t> slots_by_name_;
  std::vector<size_t> constants_;  // slots whose elements kernels read
  std::vector<Step> steps_;
  std::mutex mutex_;  // of who listens
};

}  // namespace

std::unique_ptr<Program> compile(const Graph& graph, const CompileContext& context) {
  std::unique_ptr<Program> program = Compiler(graph, context).run();
  if (context.numerics != NumericsBudget::Strict && gains_by_sizes(program->graph())) {
    CompileContext quiet = context;
    quiet.before_kernel = nullptr;
    program->specialise_by(
        [general = std::shared_ptr<const Graph>(copy_for_loops(graph)), quiet](const Bindings& sizes) {
          return Compiler(*general->bind({sizes.begin(), sizes.end()}), quiet).run();
        });
  }
  return program;
}

FusionReport fusion_of(const Graph& graph, const CompileContext& context) {
  return Compiler(graph, context).fusion();
}

std::vector<Kernel> kernels_of(const Graph& graph, const CompileContext& context) {
  return Compiler(graph, context).kernels();
}

ScheduledGraph schedule_graph(const Graph& graph, const CompileContext& context) {
  return Compiler(graph, context).schedule();
}

ExplainedProgram compile_explained(const Graph& graph, const CompileContext& context) {
  Compiler compiler(graph, context);
  FusionReport fusion = compiler.fusion();
  std::vector<Kernel> kernels = compiler.kernels(), plain = compiler.unscheduled_kernels();
  return {compiler.run(), std::move(fusion), std::move(kernels), std::move(plain)};
}

}  // namespace tenon::compiler
