// parse.h — reads the text form of a kernel graph.
#pragma once

#include "ir/parse.h"
#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// Bad text is the user's fault; what `check` would find is not looked for. The options are for constants, as
// in the text of a graph.
KernelGraph parse_kernel_graph(std::string_view text, const ParseOptions& options = {});

}  // namespace tenon::lowering
