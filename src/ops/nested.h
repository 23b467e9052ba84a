// nested.h — how the types of a nested graph relate to those of the node around it.
//
// A nested graph is closed, so the symbols in its types are its own: they stand for sizes during one run of
// it. In body(%x: f32[k,n]) → f32[k+1,n], fed with f32[0,4], k is 0 in the first iteration, 1 in the second,
// and n is 4.
#pragma once

#include "ir/graph.h"

namespace tenon {

// What symbols of a nested graph stand for, in terms of the graph around it.
using Sizes = std::map<std::string, Dim>;

// One value that a nested graph is fed, and how an error speaks of it: "carried value 2".
struct Fed {
  std::string what;
  Type type;
};

// A list of them: values numbered from 0 as "WHAT 0", "WHAT 1", …
std::vector<Fed> fed(std::string_view what, const Types& types);
Types types_of(const std::vector<Value>& values);

// Checks that a nested graph takes these: as many as it has inputs, each of them an instance of the input's
// type. Returns what its symbols stand for. Where several inputs name a symbol, the last has the say.
Sizes feed(const Node& n, std::string_view region, const std::vector<Fed>& all);

// A type of a nested graph seen from outside: dimensions that `sizes` does not tell are unknown.
Type seen_outside(const Type& type, const Sizes& sizes);

// The extents that `type`, of a nested graph, has when the graph is fed with `inputs`; 0 where they are
// dynamic.
Extents extents_when_fed(const Graph& region, const Types& inputs, const Type& type);

}  // namespace tenon
