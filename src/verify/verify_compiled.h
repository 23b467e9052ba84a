// verify_compiled.h — is an optimised model still the same once it is compiled? The passes of the target
// pipeline are checked one by one, then the program that they end in.
#pragma once

#include "compiler/compile_context.h"
#include "verify/verify.h"

namespace tenon {

// How target rewrites and programs are compared: as all else, but generated code rounds otherwise than the
// reference evaluator under every budget, so that under strict numerics they agree within 1e-5 instead of in
// all bits; with products in bf16, within eight of its rounding steps.
VerifyOptions options_for_target(VerifyOptions options, const compiler::CompileContext& context);

// Threads that run a program of this context.
int threads_of(const compiler::CompileContext& context);

// Checks every target pass that changed something, by what the reference evaluator makes of the graph before
// and after it, and then, as "compiled program", the program against the optimised graph. All are run on the
// same samples. In a large model, each target rewrite is checked where it is made, on one sample.
std::vector<PassVerification> verify_compiled(const Graph& optimised, const compiler::CompileContext& context,
                                              const VerifyOptions& options = {});

// verify_pipeline, and then verify_compiled of what it leaves, unless that computes something else already.
std::vector<PassVerification> verify_model(const Graph& model, const compiler::CompileContext& context,
                                           const VerifyOptions& options = {});

}  // namespace tenon
