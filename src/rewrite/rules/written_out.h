// written_out.h — rules for functions that are written out in simpler ops, found by running what a graph
// computes.
#pragma once

#include <concepts>

#include "rewrite/probe.h"
#include "rewrite/rule.h"

namespace tenon {

// Finds the function that a region computes; nothing if it is none of those looked for.
struct Solver {
  using Solve = std::function<std::optional<Function>(const UnaryRegion&)>;

  // One that looks for what is no function of each element.
  template <std::invocable<const UnaryRegion&> F>
  Solver(F solve) : solve(std::move(solve)) {}  // NOLINT: it is what it does
  Solver(Solve solve, std::function<bool(const UnaryRegion&)> may_find)
      : solve(std::move(solve)), may_find(std::move(may_find)) {}

  Solve solve;
  // Whether it is worth asking, at little cost. What `solve` found out is remembered, and this is not.
  std::function<bool(const UnaryRegion&)> may_find = [](const UnaryRegion& region) {
    return !region.is_elementwise();
  };
};

// A rule that puts `formula` in the place of regions that compute it, with one of `ops` in them.
Rule written_out(std::string_view name, std::set<std::string, std::less<>> ops, std::string formula,
                 const Solver& solver, std::string_view fires, std::string_view stays);

// Takes from `guess` the only function of each element that a region may compute, and tries it.
Solver elementwise(const Solver::Solve& guess, Specials specials = Specials::Kept);
// The same for one function, which needs no guess.
Solver one_function(const Function& function);

}  // namespace tenon
