#include "compiler/fuse_graph.h"

#include <algorithm>

#include "fusion/overlapped_tiling.h"
#include "schedule/cpu/bf16x3_matmul.h"
#include "schedule/cpu/choose_layouts.h"
#include "schedule/cpu/pack_a.h"
#include "schedule/cpu/pack_b.h"

namespace tenon::compiler {

using fusion::cost_of;
using fusion::group_items;
using fusion::Grouping;
using fusion::inline_stages;
using fusion::order_groups;
using fusion::overlapped_tiling;
using lowering::ContractionChoices;
using lowering::Group;
using lowering::Item;
using lowering::LoweredGraph;
using lowering::Opaque;
using lowering::Pattern;
using lowering::Stage;
using schedule::bf16x3_matmul;
using schedule::ChoiceCircumstances;
using schedule::choose_layouts;
using schedule::look_up_tuned_contractions;
using schedule::pack_a;
using schedule::pack_b;

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
std::set<std::string> symbols_of(const Node& node) {
  std::set<std::string> symbols;
  for (const std::vector<Value>& values : {node.operands(), node.results()})
    for (Value value : values)
      symbols.merge(symbols_of(value.type()));
  return symbols;
}

// Whether a node draws random numbers, or one in its nested graphs does.
bool draws(const Node& node) {
  return node.op().traits.random ||
         std::any_of(node.op().regions.begin(), node.op().regions.end(), [&](std::string_view region) {
           const std::vector<Node*> nodes = node.region(region).nodes();
           return std::any_of(nodes.begin(), nodes.end(), [](const Node* inner) { return draws(*inner); });
         });
}

}  // namespace

const std::vector<KernelGraphPass>& FusedGraph::passes() {
  using Context = KernelGraphContext;
  constexpr auto fuses = [](const Context& context) { return context.fuse; };
  static const std::vector<KernelGraphPass> table = {
      {"pack-b", "packs constant operands of products for the microkernel", "without fusion",
       [](const Context& context) { return !context.fuse; },
       [](FusedGraph& graph, const Context& context) { pack_b(graph.lowered_, context.target); },
       "first: nothing is inlined into nodes that stay apart"},
      {"group-by-node", "makes a kernel of each node, which says what fusion saves", "",
       [](const Context&) { return true; },
       [](FusedGraph& graph, const Context& context) { graph.group_by_node(context.target); },
       "before fusion, on the nodes as they were lowered"},
      {"inline-producers", "computes elements where they are read, where that costs less than storing them",
       "fusion", fuses, [](FusedGraph& graph, const Context& context) { graph.inline_items(context.target); },
       "before contractions are looked up: prologues are part of them"},
      {"look-up-tuning", "gives contractions the plans that tuning found", "fusion", fuses,
       [](FusedGraph& graph, const Context& context) {
         look_up_tuned_contractions(graph.lowered_, context.tuning,
                                    {context.target, context.threads, context.numerics});
       },
       "before anything is chosen for contractions"},
      {"choose-layouts", "puts channels last around convolutions, pads images and chooses Winograd", "fusion",
       fuses,
       [](FusedGraph& graph, const Context& context) {
         choose_layouts(graph.lowered_, graph.kept_, context.numerics, context.target);
       },
       "before packing, which reads operands in their final layout"},
      {"pack-b", "packs constant operands of products for the microkernel", "fusion", fuses,
       [](FusedGraph& graph, const Context& context) { pack_b(graph.lowered_, context.target); },
       "after layouts: Winograd has packed its weights by then"},
      {"bf16x3-matmul", "splits f32 products into products of bf16 where tuning chose it",
       "fusion, numerics default or fast",
       [](const Context& context) { return context.fuse && context.numerics != NumericsBudget::Strict; },
       [](FusedGraph& graph, const Context& context) { bf16x3_matmul(graph.lowered_, context.target); },
       "after pack-b, whose panels it splits"},
      {"pack-a", "packs the other operand where the microkernel loads several rows at once", "fusion", fuses,
       [](FusedGraph& graph, const Context& context) { pack_a(graph.lowered_, context.target); },
       "after pack-b: only products with packed weights"},
      {"fuse", "decides which nodes become one kernel", "fusion", fuses,
       [](FusedGraph& graph, const Context& context) { graph.group(context.target); },
       "after packing, whose copies fuse with what makes their elements"},
      {"order", "orders kernels so that less memory is alive at once", "fusion", fuses,
       [](FusedGraph& graph, const Context&) {
         order_groups(graph.groups_, graph.lowered_.items, graph.lowered_.buffers, graph.views());
       },
       "after fusion: fused values need no memory"},
      {"overlapped-tiling", "runs consecutive kernels tile by tile where what they exchange leaves the cache",
       "fusion", fuses,
       [](FusedGraph& graph, const Context& context) {
         overlapped_tiling(graph.groups_, graph.lowered_.items, graph.lowered_.buffers, graph.kept_,
                           context.target, context.threads);
       },
       "last: over kernels that run one after the other"},
  };
  return table;
}

FusedGraph::FusedGraph(LoweredGraph lowered, std::set<std::string> kept, const KernelGraphContext& context)
    : lowered_(std::move(lowered)), kept_(std::move(kept)) {
  for (const KernelGraphPass& pass : passes())
    if (pass.applies(context))
      pass.run(*this, context);
  find_readers();
}

void FusedGraph::note_dependences() {
  note_sizes();
  note_draws();
}

void FusedGraph::group(const Target& target) {
  note_dependences();
  Grouping grouping = group_items(lowered_.items, kept_, target);
  groups_ = std::move(grouping.groups);
  missed_ = std::move(grouping.missed);
}

// Items that are no stages keep what they stand for while others go.
void FusedGraph::inline_items(const Target& target) {
  std::map<std::string, size_t> opaque_by_write;
  for (const auto& [item, opaque] : lowered_.opaque)
    opaque_by_write.emplace(*lowered_.items[item].writes.begin(), item);
  const std::map<size_t, Opaque> before = std::move(lowered_.opaque);
  lowered_.items = inline_stages(std::move(lowered_.items), kept_, target);
  lowered_.opaque.clear();
  for (size_t i = 0; i < lowered_.items.size(); ++i)
    if (!lowered_.items[i].stage)
      lowered_.opaque.emplace(i, before.at(opaque_by_write.at(*lowered_.items[i].writes.begin())));
}

// The stages of a node are consecutive, and the last writes its result.
void FusedGraph::group_by_node(const Target& target) {
  note_dependences();
  std::set<std::string> outside;
  for (const auto& [name, value] : lowered_.values)
    outside.insert(name);
  size_t first = 0;
  for (size_t i = 0; i < lowered_.items.size(); ++i) {
    const std::set<std::string>& writes = lowered_.items[i].writes;
    if (std::none_of(writes.begin(), writes.end(),
                     [&](const std::string& each) { return lowered_.values.contains(each); }))
      continue;
    const auto begin = lowered_.items.begin() + static_cast<int64_t>(first),
               end = lowered_.items.begin() + static_cast<int64_t>(i) + 1;
    for (Group& group : group_items({begin, end}, outside, target).groups) {
      for (size_t& item : group.items)
        item += first;
      groups_.push_back(std::move(group));
    }
    first = i + 1;
  }
  find_readers();
  for (size_t i = 0; i < groups_.size(); ++i)
    if (const std::vector<Stage> stages = stages_of(i); !stages.empty())
      costs_before_.push_back(cost_of(stages, needed_outside(i), lowered_.buffers));
}

// Steps that need a dynamic size come after the first that determines it.
void FusedGraph::note_sizes() {
  std::set<std::string> given;
  for (const auto& [name, value] : lowered_.values)
    if (value.is_input())
      given.merge(symbols_of(value.type()));
  std::map<std::string, std::string> tellers;  // buffers, by symbols
  for (size_t i = 0; i < lowered_.items.size(); ++i) {
    Item& item = lowered_.items[i];
    item.after.clear();
    for (const std::string& symbol :
         item.stage ? symbols_of(item.stage->definition) : symbols_of(*lowered_.opaque.at(i).node))
      if (const auto it = tellers.find(symbol); it != tellers.end())
        item.after.insert(it->second);
    for (const std::string& buffer : item.writes)
      if (const auto value = lowered_.values.find(buffer); value != lowered_.values.end())
        for (const std::string& symbol : symbols_of(value->second.type()))
          if (!given.contains(symbol))
            tellers.emplace(symbol, buffer);
  }
}

// Random ops draw sequentially, as in the graph: another order would give other numbers.
void FusedGraph::note_draws() {
  std::optional<std::string> last;
  for (size_t i = 0; i < lowered_.items.size(); ++i)
    if (const auto opaque = lowered_.opaque.find(i);
        opaque != lowered_.opaque.end() && draws(*opaque->second.node)) {
      if (last)
        lowered_.items[i].after.insert(*last);
      last = *lowered_.items[i].writes.begin();
    }
}

std::map<std::string, std::string> FusedGraph::views() const {
  std::map<std::string, std::string> views;
  for (const auto& [item, opaque] : lowered_.opaque)
    if (opaque.kind == Opaque::Kind::Alias)
      views.emplace(lowered_.names.at(opaque.node->result().data()),
                    lowered_.names.at(opaque.node->operand(0).data()));
  return views;
}

void FusedGraph::find_readers() {
  readers_.clear();
  for (size_t i = 0; i < lowered_.items.size(); ++i)
    for (const std::string& buffer : lowered_.items[i].reads)
      readers_[buffer].push_back(i);
}

std::vector<Stage> FusedGraph::stages_of(size_t group) const {
  std::vector<Stage> stages;
  for (size_t item : groups_[group].items)
    if (lowered_.items[item].stage)
      stages.push_back(*lowered_.items[item].stage);
  return stages;
}

// Nothing is chosen for sums along rows, nor for the products of attention.
std::optional<Stage> FusedGraph::contraction_of(size_t group) const {
  const std::optional<Stage>& first = lowered_.items[groups_[group].items.front()].stage;
  const bool is_chosen_for = first && first->contraction &&
                             (groups_[group].pattern == Pattern::Contract || !first->definition.reduces());
  return is_chosen_for ? first : std::nullopt;
}

std::set<std::string> FusedGraph::needed_outside(size_t group) const {
  const std::set<size_t> own(groups_[group].items.begin(), groups_[group].items.end());
  std::set<std::string> needed;
  for (size_t item : own)
    for (const std::string& made : lowered_.items[item].writes) {
      const auto readers = readers_.find(made);
      if (kept_.contains(made) ||
          (readers != readers_.end() && std::any_of(readers->second.begin(), readers->second.end(),
                                                    [&](size_t reader) { return !own.contains(reader); })))
        needed.insert(made);
    }
  return needed;
}

bool FusedGraph::is_read(const std::string& buffer) const {
  return kept_.contains(buffer) || readers_.contains(buffer);
}

}  // namespace tenon::compiler
