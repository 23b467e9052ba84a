// written_cost.h — what a term costs in the ONNX file that is written: its nodes there, and bytes.
#pragma once

#include "rewrite/saturate/extract.h"

namespace tenon {

// Remembers the nodes of each op and types it was asked for.
saturate::CostModel written_cost();

}  // namespace tenon
