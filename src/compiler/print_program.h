// print_program.h — a program as text: its kernels as loop nests, its steps over their buffers, and what
// fusion did.
#pragma once

#include "compiler/compile.h"

namespace tenon::compiler {

// Each kernel once, by the name that the steps call it by, with a comment for every call: the nodes of the
// user's model that it computes there. `kernels` are those of kernels_of.
std::string print_kernels(const runtime::Program& program, std::vector<loops::Kernel> kernels);

// Where each buffer lies, the steps in order, and how large the arena is, for these sizes of the inputs.
std::string print_program(const runtime::Program& program, const Bindings& sizes);

// Which nodes became one kernel, what each moves and computes, why others did not and what that costs on the
// target, and what fusion saved, for these sizes of the inputs.
std::string print_fusion(const FusionReport& report, const Target& target, const Bindings& sizes);

}  // namespace tenon::compiler
