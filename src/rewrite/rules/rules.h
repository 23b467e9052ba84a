// rules.h — all rewrite rules, by subject. A rule is added to the table of its subject; a new subject needs a
// line here and one in rules.cpp.
#pragma once

#include "rewrite/rule.h"

namespace tenon {

const Rules& neutral_rules();       // x + 0, x · 1: operations that change nothing
const Rules& inverse_rules();       // -(-x), exp(log x): operations that undo each other or repeat
const Rules& constant_rules();      // (x + c) + d: constants that can meet, and one spelling for each
const Rules& distributive_rules();  // a·x + b·x
const Rules& shape_rules();         // reshapes, broadcasts, shapes as values
const Rules& reduce_rules();        // reductions of nothing; axes and kept dimensions in one spelling
const Rules& select_rules();        // where, comparisons and their negation
const Rules& cast_rules();          // conversions that lose nothing
const Rules& transpose_rules();     // transposes that meet
const Rules& linear_rules();        // products with weights, and what folds into them
const Rules& convolution_rules();   // what folds into convolutions
const Rules& branch_rules();        // convolutions of one image that are added up
const Rules& window_rules();        // windows of convolutions that reach beyond the image
const Rules& slice_rules();         // parts of tensors, and tensors put together
const Rules& whole_rules();         // what is done to each part of a tensor, done once to all of it
const Rules& early_rules();         // slices before what they are slices of is computed
const Rules& activation_rules();    // gelu, silu and their like, written out in simpler ops
const Rules& clip_rules();          // relu, min, max: one clip
const Rules& norm_rules();          // layer_norm and rms_norm, written out
const Rules& softmax_rules();       // exp(x) / sum(exp(x)), and its logarithm
const Rules& rotary_rules();        // rotary position embedding, written out
const Rules& einsum_rules();        // sums of products as transposes, sums and matmuls
const Rules& quantise_rules();      // quantised numbers: pairs, data movement, limits
const Rules& integer_rules();       // quantised layers that compute with integers
const Rules& broadcast_rules();     // large and small terms of a sum
const Rules& axiom_rules();         // equalities for equality saturation alone

// All of them, for those who list or test them.
std::vector<std::pair<std::string_view, const Rules*>> all_rules();

}  // namespace tenon
