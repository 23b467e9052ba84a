// tuned_contractions.h — what was chosen for the sums of products of a program.
#pragma once

#include "lowering/lower_graph.h"
#include "rewrite/journal.h"

namespace tenon::schedule {

// What a choice depends on besides the sum.
struct ChoiceCircumstances {
  const Target& target;
  int threads;
  NumericsBudget numerics;
};

// Gives each sum of products its key, a hash of what it computes, with all types and sizes but no names, and
// of the circumstances; and what was chosen under that key, if anything was. For stages before anything is
// chosen for them.
void look_up_tuned_contractions(lowering::LoweredGraph& lowered, const lowering::ContractionChoices& choices,
                                const ChoiceCircumstances& circumstances);

}  // namespace tenon::schedule
