// index_bounds.h — how large the integers of an input may be, by what they are used for.
#pragma once

#include <functional>
#include <optional>

#include "ir/graph.h"

namespace tenon {

// Calls `visit` with each node that reads the value, be it through casts or as a view of it, and with what it
// reads there. Of very many, only the first.
void for_each_reader(Value value, const std::function<void(const Node&, Value)>& visit);

// Whether the value is what names places in the node's operand x, as the indices of a gather or scatter do.
bool names_places(const Node& node, Value value);

// The least size that the indices of such a node count along, where the symbols of dimensions have these
// sizes; nothing where it is not known.
std::optional<int64_t> places_to_name(const Node& node, const std::map<std::string, int64_t>& sizes = {});

}  // namespace tenon
