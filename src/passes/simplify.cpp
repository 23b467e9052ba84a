#include "passes/passes.h"
#include "rewrite/apply.h"
#include "rewrite/rules/rules.h"

namespace tenon {

void simplify(Graph& graph, Journal& journal) {
  static const Rules rules = joined({&neutral_rules(), &inverse_rules(), &shape_rules(), &reduce_rules(),
                                     &select_rules(), &cast_rules(), &transpose_rules(), &slice_rules(),
                                     &early_rules(), &whole_rules(), &einsum_rules(), &quantise_rules()});
  apply_rules(graph, rules, journal);
}

void normalise(Graph& graph, Journal& journal) {
  static const Rules rules =
      joined({&neutral_rules(), &constant_rules(), &distributive_rules(), &broadcast_rules()});
  apply_rules(graph, rules, journal);
}

void fold_into_weights(Graph& graph, Journal& journal) {
  static const Rules rules =
      joined({&linear_rules(), &convolution_rules(), &branch_rules(), &window_rules(), &integer_rules()});
  apply_rules(graph, rules, journal);
}

}  // namespace tenon
