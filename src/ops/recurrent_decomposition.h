// recurrent_decomposition.h — recurrent layers as scans over the steps, of all examples at once.
#pragma once

#include "ir/graph.h"

namespace tenon {

std::vector<Value> decompose_rnn(const Node& n);
std::vector<Value> decompose_gru(const Node& n);
std::vector<Value> decompose_lstm(const Node& n);

}  // namespace tenon
