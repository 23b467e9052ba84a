// run_control.h — if, while and scan, whose nested programs run as often as elements say, with values of any
// sizes. Loops that repeat with the same sizes take less time as a LoopRun.
#pragma once

#include "runtime/control_flow.h"
#include "runtime/executor.h"

namespace tenon::runtime {

// Gives the executor of a nested program by its name: "then" and "else", or "body".
using FindRegion = std::function<const Executor&(std::string_view region)>;

// What the op gives for these operands.
Data run_control(const ControlFlow& control, std::span<const Datum> operands, const FindRegion& region,
                 const RunOptions& options);

}  // namespace tenon::runtime
