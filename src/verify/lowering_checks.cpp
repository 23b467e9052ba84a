#include "verify/lowering_checks.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "compiler/fuse_graph.h"
#include "lowering/check.h"
#include "lowering/definition_text.h"
#include "lowering/interpret_elements.h"
#include "lowering/lower_graph.h"
#include "lowering/print.h"
#include "lowering/unpack.h"
#include "verify/conditioning.h"
#include "verify/judge.h"
#include "verify/schedule_checks.h"

namespace tenon {

using lowering::BufferId;
using lowering::ElementInterpreter;
using lowering::KernelBuffer;
using lowering::KernelGraph;
using lowering::KernelNode;

namespace {

constexpr int64_t kSampledElements = 256;

// Recorded values, nudged where and when they are asked for. Constants are not: a kernel graph has its own.
class NudgedValues {
 public:
  NudgedValues(const RecordedBuffers& recorded, uint64_t seed) : recorded_(recorded), random_(seed) {}

  const Tensor* find(const KernelBuffer& buffer) {
    const Tensor* tensor = recorded_.find(buffer);
    if (tensor == nullptr)
      return nullptr;
    const auto [it, fresh] = nudged_.try_emplace(buffer.name());
    if (fresh)
      it->second = nudged(*tensor, random_);
    return &it->second.tensor();
  }

 private:
  const RecordedBuffers& recorded_;
  std::mt19937_64 random_;
  std::unordered_map<std::string, Datum> nudged_;
};

// What a buffer is computed by: its node, and those of intermediate buffers that are not values, with the
// layouts of what they read and write, but without what was decided about them.
class Signatures {
 public:
  Signatures(const KernelGraph& graph, const RecordedBuffers& recorded) : graph_(graph), recorded_(recorded) {
    for (const KernelNode& node : graph.nodes)
      for (BufferId id : node.writes)
        writers_.emplace(id, &node);
  }

  std::string of(BufferId id) const {
    const KernelNode& node = *writers_.at(id);
    std::string text = print(graph_.buffers[id], graph_);
    text += node.stage ? text_of(*node.stage) : print(node, graph_);
    for (BufferId read : node.reads) {
      text += print(graph_.buffers[read], graph_);
      const auto writer = writers_.find(read);
      if (writer != writers_.end() && writer->second->stage && writer->second->stage->border)
        text += lowering::print_number(*writer->second->stage->border);
      if (writer != writers_.end() && recorded_.find(graph_.buffers[read]) == nullptr)
        text += of(read);
    }
    return text;
  }

 private:
  std::string text_of(const lowering::Stage& stage) const {
    const loops::Definition definition = readable_definition(graph_, stage);
    std::string text;
    for (const std::vector<loops::Axis>* axes : {&definition.axes, &definition.reduced})
      for (const loops::Axis& axis : *axes)
        text += fmt::format("{} in 0..{}\n", axis.variable, axis.size);
    return text + print_body(definition, graph_.buffers);
  }

  const KernelGraph& graph_;
  const RecordedBuffers& recorded_;
  std::map<BufferId, const KernelNode*> writers_;
};

// All of few; of many, the corners more often than others: that is where tiles and padding end.
std::vector<int64_t> sampled_indices(const Extents& extents, std::mt19937_64& random) {
  const int64_t count = element_count(extents);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < std::min(count, kSampledElements); ++i) {
    if (count <= kSampledElements) {
      indices.push_back(i);
      continue;
    }
    int64_t linear = 0;
    for (int64_t extent : extents) {
      const uint64_t kind = random() % 4;
      const auto any = static_cast<int64_t>(random() % static_cast<uint64_t>(extent));
      linear = linear * extent + (kind == 0 ? 0 : kind == 1 ? extent - 1 : any);
    }
    indices.push_back(linear);
  }
  return indices;
}

}  // namespace

LoweringCheck KernelGraphChecks::check_pass(std::string_view pass, const KernelGraph& graph) {
  LoweringCheck result{.pass = std::string(pass), .lint = {.verdict = Verdict::Passed}};
  if (const std::vector<std::string> wrong = lowering::check(graph); !wrong.empty()) {
    result.lint = {.verdict = Verdict::Failed, .detail = wrong.front()};
    return result;
  }
  recorded_.note_copies(graph);
  const lowering::ValueLookup value_of = [&](const KernelBuffer& buffer) { return recorded_.find(buffer); };
  const Bindings sizes = sizes_of_values(graph, value_of);
  const Signatures signatures(graph, recorded_);
  ElementInterpreter elements(graph, sizes, value_of);
  const auto check = [&](BufferId id, const std::string& nodes) -> Check {
    const Tensor& value = *value_of(graph.buffers[id]);
    const std::vector<int64_t> indices = sampled_indices(value.extents(), random_);
    const auto compute_nudged = [&](uint64_t seed) {
      NudgedValues nudged_values(recorded_, seed);
      return ElementInterpreter(graph, sizes,
                                [&](const KernelBuffer& each) { return nudged_values.find(each); })
          .compute(id, indices);
    };
    try {
      return judge(elements.compute(id, indices), elements_at(value, indices), compute_nudged, nodes,
                   options_.tolerance);
    } catch (const UserError& error) {
      return {.verdict = Verdict::Failed, .detail = error.what()};
    }
  };
  for (const KernelNode& node : graph.nodes)
    for (BufferId id : node.writes) {
      if (!elements.can_compare(id))
        continue;
      std::string& seen = seen_[graph.buffers[id].name()];
      std::string signature = signatures.of(id);
      if (seen == signature)
        continue;
      seen = std::move(signature);
      ++result.changes;
      const std::string nodes = fmt::format("{}", fmt::join(node.stage->sources, ", "));
      add_check(result.numbers, check(id, nodes));
      if (result.failed()) {
        result.numbers.detail = fmt::format("{}: {}", nodes, result.numbers.detail);
        result.sources = node.stage->sources;
        return result;
      }
    }
  return result;
}

std::vector<LoweringCheck> check_lowering(const Graph& target_graph, const RecordedValues& recorded,
                                          const compiler::CompileContext& context,
                                          const LoweringChecksOptions& options) {
  std::vector<LoweringCheck> results;
  const auto is_wrong = [&] { return std::ranges::any_of(results, &LoweringCheck::failed); };
  KernelGraphChecks checks(recorded, options);
  const auto check = [&](std::string_view pass, const KernelGraph& graph) {
    if (is_wrong())
      return;
    step(options.listener, pass);
    LoweringCheck result = checks.check_pass(pass, graph);
    if (result.changes > 0 || result.failed())
      results.push_back(std::move(result));
  };
  compiler::KernelGraphContext passes = kernel_graph_context(context);
  passes.after_pass = [&](const compiler::KernelGraphPass& pass, const KernelGraph& graph) {
    check(pass.name, graph);
  };
  begin(options.listener, "checking kernel-graph pass",
        1 + std::ranges::count_if(compiler::FusedGraph::passes(), [&](const compiler::KernelGraphPass& pass) {
          return pass.applies(passes);
        }));
  KernelGraph lowered = lowering::lower_graph(target_graph);
  check("lower", lowered);
  try {
    const compiler::FusedGraph fused(std::move(lowered), passes);
    if (is_wrong())
      return results;
    if (LoweringCheck schedule = check_schedules(fused, context, checks.recorded(), options);
        schedule.changes > 0 || !schedule.numbers.unchecked.empty())
      results.push_back(std::move(schedule));
  } catch (const InternalError&) {
    if (!is_wrong())
      throw;  // else it is what came of that
  }
  return results;
}

}  // namespace tenon
