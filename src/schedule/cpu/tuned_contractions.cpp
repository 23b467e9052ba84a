#include "schedule/cpu/tuned_contractions.h"

#include <algorithm>

#include "base/hash.h"
#include "loops/canonical_names.h"
#include "loops/contraction.h"
#include "schedule/cpu/nest.h"

namespace tenon::schedule {

using lowering::ContractionChoice;
using lowering::ContractionChoices;
using lowering::ContractionKey;
using lowering::Group;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::Stage;

namespace {

std::string describe(const ChoiceCircumstances& circumstances) {
  return fmt::format("{}, {} threads, {}", describe(circumstances.target), circumstances.threads,
                     circumstances.numerics == NumericsBudget::Strict ? "strict" : "not strict");
}

// The plainest nest of it, and which of the buffers that it reads are constants.
std::string text_of(const Stage& stage, const KernelGraph& graph, const Target& target) {
  const loops::NamedKernel named = canonicalize_names(unscheduled_nest(
      "kernel", {stage}, Group(), {stage.definition.results.front().name}, graph.buffers, target));
  std::string text = loops::print(named.kernel);
  for (const std::string& buffer : named.reads)
    text += graph.is_constant(buffer) ? 'c' : 'v';
  return text;
}

}  // namespace

void look_up_tuned_contractions(KernelGraph& graph, const ContractionChoices& choices,
                                const ChoiceCircumstances& circumstances) {
  const uint64_t seed = hash_string(describe(circumstances));
  for (KernelNode& node : graph.nodes) {
    if (!node.stage || !match_contraction(node.stage->definition))
      continue;
    const ContractionKey key =
        hash_combine(seed, hash_string(text_of(*node.stage, graph, circumstances.target)));
    const auto chosen = choices.find(key);
    node.stage->contraction = {.key = key,
                               .choice = chosen == choices.end() ? ContractionChoice() : chosen->second};
  }
}

}  // namespace tenon::schedule
