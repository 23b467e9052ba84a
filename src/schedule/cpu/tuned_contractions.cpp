#include "schedule/cpu/tuned_contractions.h"

#include <algorithm>

#include "base/hash.h"
#include "loops/canonical_names.h"
#include "schedule/cpu/nest.h"

namespace tenon::schedule {

using loops::Function;
using loops::Scalar;
using lowering::ContractionChoice;
using lowering::ContractionChoices;
using lowering::ContractionKey;
using lowering::Group;
using lowering::Item;
using lowering::LoweredGraph;
using lowering::Stage;

namespace {

bool is_sum_of_products(const loops::Definition& definition) {
  if (definition.combine != "+" || definition.values.size() != 1)
    return false;
  const Scalar& value = definition.values.front();
  return value.kind() == Scalar::Kind::Apply &&
         (value.function() == Function::Multiply || value.function() == Function::DotI8x4 ||
          value.function() == Function::DotBf16x2);
}

std::string describe(const ChoiceCircumstances& circumstances) {
  return fmt::format("{}, {} threads, {}", describe(circumstances.target), circumstances.threads,
                     circumstances.numerics == NumericsBudget::Strict ? "strict" : "not strict");
}

// The plainest nest of it, and which of the buffers that it reads are constants.
std::string text_of(const Stage& stage, const LoweredGraph& lowered, const Target& target) {
  const loops::NamedKernel named = canonicalize_names(unscheduled_nest(
      "kernel", {stage}, Group(), {stage.definition.results.front().name}, lowered.buffers, target));
  std::string text = loops::print(named.kernel);
  for (const std::string& buffer : named.reads)
    text += lowered.is_constant(buffer) ? 'c' : 'v';
  return text;
}

}  // namespace

void look_up_tuned_contractions(LoweredGraph& lowered, const ContractionChoices& choices,
                                const ChoiceCircumstances& circumstances) {
  const uint64_t seed = hash_string(describe(circumstances));
  for (Item& item : lowered.items) {
    if (!item.stage || !is_sum_of_products(item.stage->definition))
      continue;
    const ContractionKey key =
        hash_combine(seed, hash_string(text_of(*item.stage, lowered, circumstances.target)));
    const auto chosen = choices.find(key);
    item.stage->contraction = {.key = key,
                               .choice = chosen == choices.end() ? ContractionChoice() : chosen->second};
  }
}

}  // namespace tenon::schedule
