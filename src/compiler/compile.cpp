#include "compiler/compile.h"

#include <algorithm>
#include <future>
#include <mutex>
#include <ranges>

#include "base/error.h"
#include "base/run_all.h"
#include "compiler/backend.h"
#include "compiler/build_program.h"
#include "compiler/place_copies.h"
#include "compiler/target_graph.h"
#include "lowering/lower_graph.h"
#include "runtime/prepare.h"

namespace tenon::compiler {

using fusion::cost_of;
using fusion::Missed;
using loops::Kernel;
using loops::NamedKernel;
using lowering::BufferId;
using lowering::KernelGraph;
using lowering::lower_graph;
using runtime::describe_sources;
using runtime::Executor;
using runtime::KernelCode;
using runtime::Program;

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
  const std::set<std::string_view> convolutions{"conv", "conv_transpose", "widening_conv"};
  return std::ranges::any_of(graph.nodes(), [&](const Node* node) {
    return convolutions.contains(node->op().name) && node->in("x").shape().ranked() &&
           std::ranges::any_of(node->in("x").shape().dims() | std::views::drop(2), would_be_known);
  });
}

// Whether control flow gives values whose rank is dynamic: the reference evaluator computes with them, and
// sizes of inputs may say which branches are taken.
bool has_dynamic_ranks(const Graph& graph) {
  bool found = false;
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      found |= std::ranges::any_of(node->result_types(), [](const Type& type) {
        return type.is_tensor() && !type.as_tensor().shape.ranked();
      });
  });
  return found;
}

// As if the model had these sizes.
std::unique_ptr<Graph> optimise_for(const Graph& graph, const Bindings& sizes,
                                    const CompileContext& context) {
  std::unique_ptr<Graph> bound = graph.bind({sizes.begin(), sizes.end()});
  PipelineOptions options;
  for (const Pass& pass : options.pipeline)
    if (context.disabled.contains(std::string(pass.name)))
      options.disabled.emplace(pass.name);
  Journal journal(context.numerics);
  optimize(*bound, journal, options);
  return bound;
}

// The stages of one graph on its way to a program; each is made when it is first asked for.
class Compilation {
 public:
  Compilation(const Graph& graph, const CompileContext& context) : context_(context) {
    Journal journal(context.numerics);
    graph_ = make_target_graph(graph, context, journal);
    fused_.emplace(lower_graph(*graph_), kernel_graph_context(context_));
  }

  const Graph& graph() const { return *graph_; }

  const Kernels& kernels() {
    if (!kernels_)
      kernels_.emplace(*fused_, context_);
    return *kernels_;
  }

  FusionReport fusion() {
    const KernelGraph& graph = fused_->graph();
    FusionReport report{.before = fused_->costs_before(), .after = {}, .edges = {}};
    std::map<size_t, size_t> kernel_of_node;
    std::map<BufferId, size_t> maker;
    for (const auto& [group, named] : kernels().by_group()) {
      for (size_t node : fused_->groups()[group].nodes) {
        kernel_of_node.emplace(node, report.after.size());
        for (BufferId buffer : graph.nodes[node].writes)
          maker.emplace(buffer, report.after.size());
      }
      report.after.push_back({named.sources,
                              cost_of(fused_->stages_of(group), fused_->needed_outside(group), graph.buffers),
                              fused_->contraction_of(group)});
    }
    std::set<std::pair<BufferId, size_t>> known;  // several parts of a kernel may read one buffer
    for (const Missed& missed : fused_->missed())
      if (const size_t from = maker.at(missed.buffer), to = kernel_of_node.at(missed.reader);
          from != to && known.emplace(missed.buffer, to).second)
        report.edges.push_back({from, to, graph.buffers[missed.buffer].elements, missed.reason});
    return report;
  }

  ScheduledGraph schedule() {
    std::shared_ptr<Program> program = build_slots(*graph_, *fused_, context_, nullptr);
    build_steps(*program, *fused_, kernels(), context_, nullptr);
    if (context_.backend->has_own_memory)
      place_copies(*program);
    runtime::Prepared prepared = runtime::run_prepare(*program, nullptr);
    if (prepared.failure)
      std::rethrow_exception(prepared.failure);
    return {std::move(program), std::move(prepared.constants), kernels().in_order()};
  }

  std::shared_ptr<Program> program() {
    std::shared_ptr<Program> program = slots();
    build(*program);
    generate(*program);
    return program;
  }

  std::unique_ptr<Executor> load() {
    std::shared_ptr<Program> program = slots();
    if (context_.device == kNoDevice)
      throw user_error("{} is a GPU whose code can be looked at; to run it, give a device that is here",
                       context_.target.gpu->name);
    const std::shared_ptr<runtime::Device> device = context_.backend->make_device(context_.device);
    // Memory is what large constants wait for, and the processor is what code waits for.
    std::future<runtime::Prepared> prepared;
    std::promise<void> steps_built;  // after the future: where code fails, it is given up before that waits
    prepared = std::async(std::launch::async, [&, built = steps_built.get_future()]() mutable {
      runtime::Prepared made = runtime::run_prepare(*program, device);
      built.get();
      if (device->own_memory() != nullptr && !made.failure)
        made.on_device = runtime::upload_constants(*program, made.constants, *device);
      return made;
    });
    build(*program);
    steps_built.set_value();
    generate(*program);
    return std::make_unique<Executor>(program, device, prepared.get());
  }

 private:
  // For programs besides the one whose kernels are told of.
  CompileNested compile_nested(bool weights) const {
    return [this, weights](const Graph& graph) {
      CompileContext context = context_;
      context.before_kernel = nullptr;
      if (weights)
        context.added_passes.clear();
      return Compilation(graph, context).program();
    };
  }

  std::shared_ptr<Program> slots() { return build_slots(*graph_, *fused_, context_, compile_nested(true)); }

  // What kernels there are, and in which order they run.
  void build(Program& program) {
    build_steps(program, *fused_, kernels(), context_, compile_nested(false));
    if (context_.backend->has_own_memory)
      place_copies(program);
  }

  // Equal kernels are compiled once, and all cores take part.
  void generate(Program& program) {
    const std::vector<const NamedKernel*>& distinct = kernels().distinct();
    program.code.resize(distinct.size());
    run_all(distinct.size(), context_.target.cores, [&](size_t i) {
      tell_of_kernel(distinct.size());
      program.code[i] = with_context(
          [&] { return describe_sources(distinct[i]->sources); },
          [&] { return context_.backend->generate(distinct[i]->kernel, context_.target, context_.cache); });
    });
  }

  void tell_of_kernel(size_t all) {
    const std::lock_guard lock(mutex_);
    if (context_.before_kernel)
      context_.before_kernel(static_cast<int64_t>(all));
  }

  CompileContext context_;
  std::unique_ptr<Graph> graph_;
  std::optional<FusedGraph> fused_;
  std::optional<Kernels> kernels_;
  std::mutex mutex_;  // of who listens
};

}  // namespace

std::unique_ptr<Executor> compile(const Graph& graph, const CompileContext& context) {
  Compilation compilation(graph, context);
  std::unique_ptr<Executor> executor = compilation.load();
  const bool decides_ranks = has_dynamic_ranks(graph);
  if (context.numerics != NumericsBudget::Strict && !context.target.gpu &&
      (decides_ranks || gains_by_sizes(compilation.graph()))) {
    CompileContext quiet = context;
    quiet.before_kernel = nullptr;
    executor->specialise_by([general = std::shared_ptr<const Graph>(copy_for_loops(graph)), quiet,
                             decides_ranks](const Bindings& sizes) {
      const std::unique_ptr<Graph> special =
          decides_ranks ? optimise_for(*general, sizes, quiet) : general->bind({sizes.begin(), sizes.end()});
      return Compilation(*special, quiet).load();
    });
  }
  return executor;
}

std::shared_ptr<Program> program_of(const Graph& graph, const CompileContext& context) {
  return Compilation(graph, context).program();
}

CountedProgram program_with_operations(const Graph& graph, const CompileContext& context) {
  Compilation compilation(graph, context);
  std::vector<Dim> operations;
  for (const FusedKernel& kernel : compilation.fusion().after)
    operations.push_back(kernel.cost.operations);
  return {compilation.program(), std::move(operations)};
}

FusionReport fusion_of(const Graph& graph, const CompileContext& context) {
  return Compilation(graph, context).fusion();
}

std::vector<Kernel> kernels_of(const Graph& graph, const CompileContext& context) {
  return Compilation(graph, context).kernels().in_order();
}

ScheduledGraph schedule_graph(const Graph& graph, const CompileContext& context) {
  return Compilation(graph, context).schedule();
}

ExplainedProgram compile_explained(const Graph& graph, const CompileContext& context) {
  Compilation compilation(graph, context);
  FusionReport fusion = compilation.fusion();
  std::vector<Kernel> kernels = compilation.kernels().in_order(), plain = compilation.kernels().unscheduled();
  return {compilation.load(), std::move(fusion), std::move(kernels), std::move(plain)};
}

}  // namespace tenon::compiler
