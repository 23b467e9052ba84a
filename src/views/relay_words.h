// relay_words.h — ops of ours that Relay has another form of, or writes as several calls.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/graph.h"

namespace tenon {

// How a printer lets parts be written: `use` gives the text of a value, `let` names an expression on a line
// of its own and gives that name.
struct RelayWriter {
  std::function<std::string(Value)> use;
  std::function<std::string(const std::string&)> let;
};

// 2f is an f32, 2i64 an i64: a number says its type.
std::string relay_suffix(DType dtype);

// The expression for the node, after its parts were written; nothing, and nothing written, for a node that
// has no form of its own.
std::optional<std::string> written_in_relay(const Node& node, const RelayWriter& writer);

}  // namespace tenon
