#include "passes/passes.h"
#include "rewrite/apply.h"
#include "rewrite/rules/rules.h"

namespace tenon {

void recognise_functions(Graph& graph, Journal& journal) {
  static const Rules rules =
      joined({&clip_rules(), &activation_rules(), &softmax_rules(), &norm_rules(), &rotary_rules()});
  apply_rules(graph, rules, journal);
}

}  // namespace tenon
