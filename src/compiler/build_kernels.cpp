#include "compiler/build_kernels.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/run_all.h"
#include "schedule/cpu/nest.h"

namespace tenon::compiler {

using loops::canonicalize_names;
using loops::Kernel;
using loops::NamedKernel;
using lowering::BufferId;
using lowering::Group;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Stage;

namespace {

std::vector<std::string> sources_of(const std::vector<Stage>& stages) {
  std::vector<std::string> sources;
  for (const Stage& stage : stages)
    for (const std::string& source : stage.sources)
      if (std::ranges::find(sources, source) == sources.end())
        sources.push_back(source);
  return sources;
}

}  // namespace

Kernels::Kernels(const FusedGraph& fused, const CompileContext& context)
    : fused_(fused),
      backend_(*context.backend),
      target_(context.target),
      threads_(context.threads != 0 ? context.threads : context.target.cores) {
  struct Built {
    std::optional<NamedKernel> kernel;
    std::string text;
  };
  std::vector<Built> built(fused_.groups().size());
  run_all(built.size(), target_.cores, [&](size_t i) {
    if ((built[i].kernel = build(i)))
      built[i].text = loops::print(built[i].kernel->kernel);
  });
  std::unordered_map<std::string_view, size_t> known;
  for (size_t i = 0; i < built.size(); ++i) {
    if (!built[i].kernel)
      continue;
    const NamedKernel& named = kernels_.emplace(i, std::move(*built[i].kernel)).first->second;
    const auto [it, fresh] = known.emplace(built[i].text, distinct_.size());
    if (fresh)
      distinct_.push_back(&named);
    numbers_[i] = it->second;
  }
}

// May run on several threads at once.
std::optional<NamedKernel> Kernels::build(size_t group) const {
  const KernelGraph& graph = fused_.graph();
  const KernelNode& first = graph.nodes[fused_.groups()[group].nodes.front()];
  if (!first.stage)
    return first.nest ? build_nest_of_node(first) : std::nullopt;
  const std::vector<Stage> stages = fused_.stages_of(group);
  const Group& all = fused_.groups()[group];
  NamedKernel named = canonicalize_names(
      backend_.schedule(stages, all, fused_.needed_outside(group), graph.buffers, {target_, threads_}));
  named.sources = sources_of(stages);
  return named;
}

std::optional<NamedKernel> Kernels::build_nest_of_node(const KernelNode& node) const {
  Kernel kernel = backend_.schedule_nest(*node.nest);
  if (backend_.occupancy != nullptr && backend_.occupancy(kernel, target_) == 0)
    return std::nullopt;
  NamedKernel named = canonicalize_names(std::move(kernel));
  const auto names_of = [&](const std::vector<BufferId>& ids) {
    std::vector<std::string> names;
    for (BufferId id : ids)
      names.push_back(fused_.graph().buffers[id].name());
    return names;
  };
  named.reads = names_of(node.operands);
  named.writes = names_of(node.results);
  named.sources = node.sources;
  return named;
}

const NamedKernel* Kernels::find(size_t group) const {
  const auto found = kernels_.find(group);
  return found == kernels_.end() ? nullptr : &found->second;
}

std::vector<Kernel> Kernels::in_order() const {
  std::vector<Kernel> kernels;
  for (const auto& [group, named] : kernels_)
    kernels.push_back(named.kernel);
  return kernels;
}

std::vector<Kernel> Kernels::unscheduled() const {
  std::vector<Kernel> kernels;
  for (const auto& [group, named] : kernels_) {
    std::vector<Stage> stages = fused_.stages_of(group);
    for (Stage& stage : stages)
      if (stage.as_written)
        stage.definition = *stage.as_written;
    kernels.push_back(stages.empty() ? named.kernel
                                     : canonicalize_names(schedule::unscheduled_nest(
                                                              "kernel", stages, fused_.groups()[group],
                                                              fused_.needed_outside(group),
                                                              fused_.graph().buffers, target_))
                                           .kernel);
  }
  return kernels;
}

}  // namespace tenon::compiler
