// written_out.h — rules for functions that are written out in simpler ops, found by running what a graph
// computes.
#pragma once

#include "rewrite/probe.h"
#include "rewrite/rule.h"

namespace tenon {

// The function that a region computes; nothing if it is none of those looked for.
using Solver = std::function<std::optional<Function>(const UnaryRegion&)>;

// A rule that puts `formula` in the place of regions that compute it, with one of `ops` in them.
Rule written_out(std::string_view name, std::set<std::string, std::less<>> ops, std::string formula,
                 const Solver& solve, std::string_view fires, std::string_view stays);

// Takes from `guess` the only function of each element that a region may compute, and tries it.
Solver elementwise(const Solver& guess, Specials specials = Specials::Kept);

}  // namespace tenon
