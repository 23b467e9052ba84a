// control_flow.h — what a program keeps of a node with nested graphs.
#pragma once

#include "ir/graph.h"
#include "runtime/control_flow.h"

namespace tenon::compiler {

// Of an if, while or scan.
runtime::ControlFlow control_flow_of(const Node& node);

}  // namespace tenon::compiler
