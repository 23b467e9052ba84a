// passes.h — every pass, one file each. A pass changes a graph and those nested in it, and writes down in the
// journal what it did; it leaves no node that nothing uses.
#pragma once

#include "rewrite/journal.h"

namespace tenon {

// Erases nodes whose results nothing uses.
void remove_dead(Graph& graph, Journal& journal);
// Computes what depends on constants alone, and shapes that are known. A value of more than kMostFolded bytes
// is not computed, so that no model is blown up; nor is what is made of more than kSmallConstant bytes,
// unless it only takes as many of them: that is done when the model is written or compiled, lest all weights
// be in memory at once. What depends on parameters stays, until they are frozen.
void fold_constants(Graph& graph, Journal& journal);
// The same, but for conversions of halves to f32, which a GPU makes as it reads them.
void fold_constants_but_halves(Graph& graph, Journal& journal);
// Whether the node is such a conversion, of a tensor of two dimensions or more.
bool widens_halves(const Node& node);
// Keeps one of several nodes that compute the same.
void merge_equal(Graph& graph, Journal& journal);
// Rules, until none fires: operations that change nothing or undo each other go.
void simplify(Graph& graph, Journal& journal);
// Rules, until none fires: what can be written in several ways is written in one.
void normalise(Graph& graph, Journal& journal);
// Finds activations, normalisations, softmax and rotary embeddings that are written out in simpler ops, and
// makes each one node.
void recognise_functions(Graph& graph, Journal& journal);

// Moves transposes to where they meet others, if fewer elements are moved then.
void move_transposes(Graph& graph, Journal& journal);
// Makes one split of slices that together are all of a tensor, and applies what all parts of a split go
// through before it.
void split_siblings(Graph& graph, Journal& journal);
// Takes the only branch of an `if` that is ever taken.
void inline_branches(Graph& graph, Journal& journal);
// Tells the branches of an `if` the sizes that what they get always has.
void bind_branches(Graph& graph, Journal& journal);
// Writes out loops of no iterations, of one, or of few small ones.
void unroll_loops(Graph& graph, Journal& journal);
// Takes what was put into sequences and optionals, instead of taking it out of them again.
void unpack_sequences(Graph& graph, Journal& journal);
// Hands nested graphs only what they read, and takes from them only what is used.
void prune_regions(Graph& graph, Journal& journal);
// Computes before a loop what is the same in each of its iterations.
void hoist_invariants(Graph& graph, Journal& journal);
// Finds attention, however it is written.
void recognise_attention(Graph& graph, Journal& journal);
// Rules, until none fires: transposes, biases, scales and batch normalisation become part of the products and
// convolutions they stand beside.
void fold_into_weights(Graph& graph, Journal& journal);
// Folds the scales and shifts of normalisations into linear layers.
void fold_norms(Graph& graph, Journal& journal);
// Makes one product of several that differ in nothing but their weights.
void merge_siblings(Graph& graph, Journal& journal);
// Makes constants of parameters: from then on their values count, and no gradients are taken for them.
void freeze_parameters(Graph& graph, Journal& journal);

constexpr int64_t kMostFolded = 4 << 20, kSmallConstant = 64 << 10;

}  // namespace tenon
