// relay_sequences.h — sequences in Relay: tuples, where their length is known.
#pragma once

#include "views/relay_words.h"

namespace tenon {

// As written_in_relay does.
std::optional<std::string> write_sequence_at(const Node& node, const RelayWriter& writer);
std::optional<std::string> write_sequence_concat(const Node& node, const RelayWriter& writer);
std::optional<std::string> write_sequence_construct(const Node& node, const RelayWriter& writer);
std::optional<std::string> write_sequence_split(const Node& node, const RelayWriter& writer);

}  // namespace tenon
