#include "compiler/look_up_choices.h"

#include <algorithm>

#include "base/hash.h"
#include "compiler/rename_kernel.h"
#include "schedule/nest.h"

namespace tenon {

using loops::Function;
using loops::Scalar;

namespace {

bool is_sum_of_products(const loops::Definition& definition) {
  if (definition.combine != "+" || definition.values.size() != 1)
    return false;
  const Scalar& value = definition.values.front();
  return value.kind() == Scalar::Kind::Apply &&
         (value.function() == Function::Multiply || value.function() == Function::DotBytes ||
          value.function() == Function::DotPairs);
}

std::string describe(const ChoiceCircumstances& circumstances) {
  return fmt::format("{}, {} threads, {}", describe(circumstances.target), circumstances.threads,
                     circumstances.numerics == NumericsBudget::Strict ? "strict" : "not strict");
}

// The plainest nest of it, and which of the buffers that it reads are constants.
std::string text_of(const Stage& stage, const LoweredGraph& lowered, const Target& target) {
  const NamedKernel named = rename(plain_nest(
      "kernel", {stage}, Group(), {stage.definition.results.front().name}, lowered.buffers, target));
  std::string text = loops::print(named.kernel);
  for (const std::string& buffer : named.reads)
    text += lowered.is_constant(buffer) ? 'c' : 'v';
  return text;
}

}  // namespace

void look_up_choices(LoweredGraph& lowered, const ContractionChoices& choices,
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

}  // namespace tenon
