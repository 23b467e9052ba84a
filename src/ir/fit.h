// fit.h — whether what a value is while a graph runs has the type that it should have.
#pragma once

#include "ir/graph.h"
#include "ir/size_check.h"

namespace tenon {

// Whether `datum` may have this type; symbols that stand alone are bound when first met, and must agree from
// then on.
bool fits(const Datum& datum, const Type& type, Bindings& bindings);

// An input of a graph, or of what it was compiled to.
struct InputPort {
  std::string name;
  Type type;
  bool is_read = true;  // what nothing reads may be anything
};
std::vector<InputPort> inputs_of(const Graph& graph);

// What symbols stand for where a graph of this name gets these inputs. Those that do not fit are the user's
// fault.
Bindings bind_inputs(const std::string& name, const std::vector<InputPort>& ports, const Data& inputs);
Bindings bind_inputs(const Graph& graph, const Data& inputs);

// Whether something of the type has no elements.
bool is_empty(const Type& type, const Bindings& bindings);

// Gives a tensor without elements the sizes of the type: a loop of no iterations does not know those of what
// it would have collected. False for any other.
bool resize_empty(Datum& datum, const Type& type, const Bindings& bindings);

// ", where n = 3" for the symbols of a type that are bound.
std::string bindings_text(const Type& type, const Bindings& bindings);

}  // namespace tenon
