// tuned_contractions.h — tuned choices for the contractions of a program.
#pragma once

#include "lowering/lower_graph.h"
#include "rewrite/journal.h"

namespace tenon::schedule {

// What a choice depends on besides the contraction.
struct ChoiceCircumstances {
  const Target& target;
  int threads;
  NumericsBudget numerics;
};

// Gives each contraction its key, a hash of its expression, types and sizes, without names, and of the
// circumstances; and the tuned choice under that key, if any. Runs before any choice is made.
void look_up_tuned_contractions(lowering::KernelGraph& graph, const lowering::ContractionChoices& choices,
                                const ChoiceCircumstances& circumstances);

}  // namespace tenon::schedule
