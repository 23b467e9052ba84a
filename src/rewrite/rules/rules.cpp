#include "rewrite/rules/rules.h"

namespace tenon {

std::vector<std::pair<std::string_view, const Rules*>> all_rules() {
  return {
      {"neutral", &neutral_rules()},
      {"inverse", &inverse_rules()},
      {"constant", &constant_rules()},
      {"distributive", &distributive_rules()},
      {"shape", &shape_rules()},
      {"reduce", &reduce_rules()},
      {"select", &select_rules()},
      {"cast", &cast_rules()},
      {"transpose", &transpose_rules()},
      {"slice", &slice_rules()},
      {"early", &early_rules()},
      {"whole", &whole_rules()},
      {"linear", &linear_rules()},
      {"convolution", &convolution_rules()},
      {"branches", &branch_rules()},
      {"window", &window_rules()},
      {"activation", &activation_rules()},
      {"clip", &clip_rules()},
      {"norm", &norm_rules()},
      {"softmax", &softmax_rules()},
      {"rotary", &rotary_rules()},
      {"einsum", &einsum_rules()},
      {"quantise", &quantise_rules()},
      {"integer", &integer_rules()},
      {"broadcast", &broadcast_rules()},
      {"axioms", &axiom_rules()},
  };
}

}  // namespace tenon
