// infer.h — what the gate and lint both ask of a node: does it fit its op's declaration, and what are its
// results?
#pragma once

#include "ir/graph.h"

namespace tenon {

// Throws a user_error when the operands' kinds and dtypes, or the attributes, do not fit the declaration.
void check_against_declaration(const Node& node);

// The types of the results; dynamic dimensions are unknown.
Types infer_types(const Node& node);

// `inferred`, with what it leaves unknown taken from `declared` where the two are compatible.
Type complete(const Type& inferred, const Type& declared);

}  // namespace tenon
