// recurrent.h — recurrent layers over a sequence: rnn, gru, lstm.
//
// x is [time, batch, input]; weights have a leading dimension for the directions, then the gates one under
// the other: w [directions, gates·hidden, input], r [directions, gates·hidden, hidden], and the biases of
// both in one row, bias [directions, 2·gates·hidden].
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& recurrent_ops();

}  // namespace tenon
