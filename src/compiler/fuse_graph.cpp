#include "compiler/fuse_graph.h"

#include <algorithm>

#include "compiler/split_kernels.h"
#include "fusion/overlapped_tiling.h"
#include "ops/random.h"
#include "schedule/choose_layouts.h"
#include "schedule/cpu/bf16x3_matmul.h"
#include "schedule/cpu/pack_a.h"
#include "schedule/cpu/pack_b.h"
#include "schedule/cpu/select_contraction.h"
#include "schedule/cpu/use_winograd.h"
#include "schedule/cpu/vnni_pack.h"
#include "schedule/cuda/schedule_kernel.h"
#include "schedule/cuda/select_contraction.h"
#include "schedule/cuda/sort_in_blocks.h"
#include "schedule/cuda/split_reductions.h"

namespace tenon::compiler {

using fusion::cost_of;
using fusion::group_nodes;
using fusion::Grouping;
using fusion::inline_stages;
using fusion::order_groups;
using fusion::overlapped_tiling;
using lowering::BufferId;
using lowering::Group;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Pattern;
using lowering::Stage;
using schedule::bf16x3_matmul;
using schedule::ChoiceCircumstances;
using schedule::choose_layouts;
using schedule::look_up_tuned_contractions;
using schedule::pack_a;
using schedule::pack_b;
using schedule::select_contractions;
using schedule::use_winograd;
using schedule::vnni_pack;

namespace {

// The sizes and loop variables that a definition speaks of.
std::set<std::string> symbols_of(const loops::Definition& definition) {
  std::set<std::string> symbols;
  const auto add = [&](const Dim& dim) {
    for (const std::string& symbol : dim.symbols())
      symbols.insert(symbol);
  };
  for (const std::vector<loops::Axis>* axes : {&definition.axes, &definition.reduced})
    for (const loops::Axis& axis : *axes)
      add(axis.size);
  for (const loops::Buffer& result : definition.results)
    for (const Dim& size : result.sizes)
      add(size);
  for (const std::vector<loops::Scalar>* scalars : {&definition.at, &definition.values})
    for (const loops::Scalar& scalar : *scalars)
      loops::for_each_index(scalar, add);
  return symbols;
}

// Those in the types of what a node takes and gives.
std::set<std::string> symbols_of(const KernelNode& node, const KernelGraph& graph) {
  std::set<std::string> symbols;
  for (const std::vector<BufferId>* ids : {&node.operands, &node.results})
    for (BufferId id : *ids)
      symbols.merge(symbols_of(graph.buffers[id].type()));
  return symbols;
}

}  // namespace

KernelGraphContext kernel_graph_context(const CompileContext& context) {
  return {.target = context.target,
          .backend = *context.backend,
          .threads = context.threads != 0 ? context.threads : context.target.cores,
          .numerics = context.numerics,
          .fuse = context.fuse,
          .tuning = context.tuning,
          .precision = context.precision};
}

const std::vector<KernelGraphPass>& FusedGraph::passes() {
  using Context = KernelGraphContext;
  constexpr auto fuses = [](const Context& context) { return context.fuse; };
  constexpr auto on_gpu = [](const Context& context) { return context.target.gpu.has_value(); };
  constexpr auto on_cpu = [](const Context& context) { return !context.target.gpu; };
  constexpr auto fuses_on_cpu = [](const Context& context) { return context.fuse && !context.target.gpu; };
  constexpr auto fuses_on_gpu = [](const Context& context) {
    return context.fuse && context.target.gpu.has_value();
  };
  constexpr auto apart_on_cpu = [](const Context& context) { return !context.fuse && !context.target.gpu; };
  constexpr auto select = [](FusedGraph& graph, const Context& context) {
    select_contractions(graph.graph_, {context.target, context.threads, context.numerics, context.fuse});
  };
  constexpr auto always = [](const Context&) { return true; };
  static const std::vector<KernelGraphPass> table = {
      {"vnni-pack", "packs four int8 or, with precision bf16, two bf16 into words for dot products", "CPU",
       on_cpu,
       [](FusedGraph& graph, const Context& context) {
         vnni_pack(graph.graph_, context.precision == MatmulPrecision::BF16);
       },
       "first: what is chosen for contractions is chosen for words"},
      {"select-contractions", "decides how each contraction is computed, and what is packed for it",
       "CPU, without fusion", apart_on_cpu, select,
       "after vnni-pack: nothing is inlined into nodes that stay apart"},
      {"pack-b", "packs constant operands of products for the microkernel", "CPU, without fusion",
       apart_on_cpu, [](FusedGraph& graph, const Context&) { pack_b(graph.graph_); },
       "after select-contractions, as planned"},
      {"sort-in-blocks", "sorts rows that fit into shared memory by a thread block each", "GPU", on_gpu,
       [](FusedGraph& graph, const Context& context) {
         schedule::cuda::sort_in_blocks(graph.graph_, *context.target.gpu);
       },
       "before nodes are grouped: a nest is a kernel by itself"},
      {"group-by-node", "makes a kernel of each node, which says what fusion saves", "", always,
       [](FusedGraph& graph, const Context& context) { graph.group_by_node(context.target); },
       "before fusion, on the nodes as they were lowered"},
      {"inline-producers",
       "computes elements where they are read, where that costs less than storing them (recomputation)",
       "fusion", fuses,
       [](FusedGraph& graph, const Context& context) {
         graph.graph_.groups.clear();
         inline_stages(graph.graph_, context.target, context.numerics);
         graph.note_dependences();
       },
       "before contractions are looked up: prologues are part of them"},
      {"look-up-tuning", "gives contractions the plans that tuning found", "CPU, fusion", fuses_on_cpu,
       [](FusedGraph& graph, const Context& context) {
         look_up_tuned_contractions(graph.graph_, context.tuning,
                                    {context.target, context.threads, context.numerics});
       },
       "before anything is chosen for contractions"},
      {"choose-layouts", "puts channels last around convolutions and, for a CPU, pads images", "fusion",
       fuses, [](FusedGraph& graph, const Context& context) { choose_layouts(graph.graph_, context.target); },
       "before contractions are planned, for operands in their final layout"},
      {"select-contractions", "decides how each contraction is computed, and what is packed for it",
       "CPU, fusion", fuses_on_cpu, select, "after layouts, and before all that reads the plans"},
      {"use-winograd", "transforms the weights of convolutions by Winograd, and pads images to whole tiles",
       "CPU, fusion", fuses_on_cpu,
       [](FusedGraph& graph, const Context& context) { use_winograd(graph.graph_, context.target); },
       "after select-contractions, as planned"},
      {"pack-b", "packs constant operands of products for the microkernel", "CPU, fusion", fuses_on_cpu,
       [](FusedGraph& graph, const Context&) { pack_b(graph.graph_); },
       "after select-contractions, as planned"},
      {"bf16x3-matmul", "splits f32 products into products of bf16 where tuning chose it",
       "CPU, fusion, numerics default or fast",
       [](const Context& context) {
         return context.fuse && !context.target.gpu && context.numerics != NumericsBudget::Strict;
       },
       [](FusedGraph& graph, const Context&) { bf16x3_matmul(graph.graph_); },
       "after pack-b, whose panels it splits"},
      {"pack-a", "packs the other operand where the microkernel loads several rows at once", "CPU, fusion",
       fuses_on_cpu, [](FusedGraph& graph, const Context&) { pack_a(graph.graph_); },
       "after pack-b: only products with packed weights"},
      {"split-reductions", "splits long reductions to few elements into parts for all multiprocessors",
       "GPU, fusion", fuses_on_gpu,
       [](FusedGraph& graph, const Context& context) {
         graph.missed_ = schedule::cuda::split_reductions(graph.graph_, context.target, context.numerics);
       },
       "before fusion: what reads the whole does not fuse with its parts"},
      {"select-contractions", "decides by which arithmetic and in which tiles products are computed", "GPU",
       on_gpu,
       [](FusedGraph& graph, const Context& context) {
         schedule::cuda::select_contractions(graph.graph_, *context.target.gpu, context.numerics);
       },
       "after inlining and splitting: what factors compute is part of it"},
      {"fuse", "decides which nodes become one kernel (vertical and horizontal fusion)", "fusion", fuses,
       [](FusedGraph& graph, const Context& context) { graph.group(context.target, context.numerics); },
       "after packing, whose copies fuse with what makes their elements"},
      {"split-kernels", "takes kernels apart that a multiprocessor has too little shared memory for",
       "GPU, fusion",
       [](const Context& context) { return context.fuse && context.backend.occupancy != nullptr; },
       [](FusedGraph& graph, const Context& context) { graph.split(context); },
       "after fusion, whose kernels it schedules to see what they need"},
      {"order", "orders kernels so that less memory is alive at once", "fusion", fuses,
       [](FusedGraph& graph, const Context&) { order_groups(graph.graph_); },
       "after fusion: fused values need no memory"},
      {"overlapped-tiling", "runs consecutive kernels tile by tile where what they exchange leaves the cache",
       "CPU, fusion", fuses_on_cpu,
       [](FusedGraph& graph, const Context& context) {
         overlapped_tiling(graph.graph_, context.target, context.threads);
       },
       "last: over kernels that run one after the other"},
  };
  return table;
}

FusedGraph::FusedGraph(KernelGraph graph, const KernelGraphContext& context)
    : graph_(std::move(graph)), kept_(graph_.kept()) {
  for (const KernelGraphPass& pass : passes())
    if (pass.applies(context))
      run(pass, context);
  find_readers();
}

void FusedGraph::run(const KernelGraphPass& pass, const KernelGraphContext& context) {
  pass.run(*this, context);
  if (context.after_pass)
    context.after_pass(pass, graph_);
}

void FusedGraph::note_dependences() {
  note_sizes();
  note_draws();
}

void FusedGraph::group(const Target& target, NumericsBudget numerics) {
  note_dependences();
  Grouping grouping = group_nodes(graph_.nodes, graph_.buffers, kept_, target, numerics);
  graph_.groups = std::move(grouping.groups);
  std::ranges::move(grouping.missed, std::back_inserter(missed_));
}

void FusedGraph::split(const KernelGraphContext& context) {
  find_readers();
  SplitKernels split = split_kernels(*this, context);
  graph_.groups = std::move(split.groups);
  std::ranges::move(split.missed, std::back_inserter(missed_));
}

// The stages of a node are consecutive, and the last writes its result.
void FusedGraph::group_by_node(const Target& target) {
  note_dependences();
  std::set<BufferId> outside;
  for (const auto& [value, id] : graph_.values)
    outside.insert(id);
  size_t first = 0;
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    if (std::ranges::none_of(graph_.nodes[i].writes, [&](BufferId each) { return outside.contains(each); }))
      continue;
    const std::span<const KernelNode> nodes = std::span(graph_.nodes).subspan(first, i + 1 - first);
    for (Group& group : group_nodes(nodes, graph_.buffers, outside, target).groups) {
      for (size_t& node : group.nodes)
        node += first;
      graph_.groups.push_back(std::move(group));
    }
    first = i + 1;
  }
  find_readers();
  for (size_t i = 0; i < graph_.groups.size(); ++i)
    if (const std::vector<Stage> stages = stages_of(i); !stages.empty())
      costs_before_.push_back(cost_of(stages, needed_outside(i), graph_.buffers));
}

// Steps that need a dynamic size come after the first that determines it.
void FusedGraph::note_sizes() {
  std::set<std::string> given;
  for (BufferId input : graph_.inputs)
    given.merge(symbols_of(graph_.buffers[input].type()));
  std::map<std::string, BufferId> tellers;  // by symbols
  for (KernelNode& node : graph_.nodes) {
    node.after.clear();
    for (const std::string& symbol :
         node.stage ? symbols_of(node.stage->definition) : symbols_of(node, graph_))
      if (const auto it = tellers.find(symbol); it != tellers.end())
        node.after.insert(it->second);
    for (BufferId buffer : node.writes)
      if (const Value value = graph_.buffers[buffer].value)
        for (const std::string& symbol : symbols_of(value.type()))
          if (!given.contains(symbol))
            tellers.emplace(symbol, buffer);
  }
}

// Random ops take their call numbers in the order of the graph: another would give other numbers.
void FusedGraph::note_draws() {
  std::optional<BufferId> last;
  for (KernelNode& node : graph_.nodes)
    if (!node.stage && node.node != nullptr && takes_call(*node.node)) {
      if (last)
        node.after.insert(*last);
      last = *node.writes.begin();
    }
}

void FusedGraph::find_readers() {
  readers_.clear();
  for (size_t i = 0; i < graph_.nodes.size(); ++i)
    for (BufferId buffer : graph_.nodes[i].reads)
      readers_[buffer].push_back(i);
}

std::vector<Stage> FusedGraph::stages_of(size_t group) const {
  std::vector<Stage> stages;
  for (size_t node : groups()[group].nodes)
    if (graph_.nodes[node].stage)
      stages.push_back(*graph_.nodes[node].stage);
  return stages;
}

// Nothing is chosen for sums along rows, nor for the products of attention. On a GPU, rows that are each one
// sum are those of a product, too.
std::optional<Stage> FusedGraph::contraction_of(size_t group) const {
  const Group& kernel = groups()[group];
  const std::optional<Stage>& first = graph_.nodes[kernel.nodes.front()].stage;
  if (!first)
    return std::nullopt;
  const bool is_chosen_for =
      first->contraction
          ? kernel.pattern == Pattern::Contract || !first->definition.reduces()
          : first->plan && kernel.pattern != Pattern::FusedAttention &&
                schedule::cuda::is_sum_with_epilogue(stages_of(group), static_cast<size_t>(kernel.rows));
  return is_chosen_for ? first : std::nullopt;
}

std::set<std::string> FusedGraph::needed_outside(const Group& group) const {
  const std::set<size_t> own(group.nodes.begin(), group.nodes.end());
  std::set<std::string> needed;
  for (size_t node : own)
    for (BufferId made : graph_.nodes[node].writes) {
      const auto readers = readers_.find(made);
      if (kept_.contains(made) ||
          (readers != readers_.end() && std::any_of(readers->second.begin(), readers->second.end(),
                                                    [&](size_t reader) { return !own.contains(reader); })))
        needed.insert(graph_.buffers[made].name());
    }
  return needed;
}

bool FusedGraph::is_read(BufferId buffer) const {
  return kept_.contains(buffer) || readers_.contains(buffer);
}

}  // namespace tenon::compiler
