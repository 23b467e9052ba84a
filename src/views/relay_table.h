// relay_table.h — our ops in Relay's words.
#pragma once

#include "views/vocabulary.h"

namespace tenon {

// Null for a node that Relay has no word for.
const Counterpart* find_relay_op(const Node& node);

}  // namespace tenon
