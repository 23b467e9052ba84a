// checks.h — the checks of a graph against the one that it was made from. They know of no pass and no
// pipeline: any two graphs will do.
#pragma once

#include "verify/random_inputs.h"
#include "verify/verify.h"

namespace tenon {

constexpr std::string_view kUnsteady =
    "the model itself changes as much if its floats move by a rounding step";

// Runs a graph that was rewritten. Where it cannot be run, the check has failed.
std::optional<Data> run_rewritten(const Graph& graph, const Data& inputs, Check& check,
                                  const EvaluateOptions& options = {});

// Whether outputs of a graph that was rewritten are those of the model, on a sample of it. Where they are
// not, the model is run again with nudged floats: what it makes of rounding itself is no fault of who rewrote
// it (conditioning.h). Under strict numerics that is no excuse.
Check compare_with_sample(const Graph& model, const Sample& sample, const Data& actual,
                          const VerifyOptions& options);

Check check_numbers(const Graph& before, const Graph& after, const VerifyOptions& options);
Check check_gradients(const Graph& before, const Graph& after, const VerifyOptions& options);
Check check_lint(const Graph& graph);

// What several nodes read may become something else for each, as weights do that two normalisations are
// folded into. So the numbers held afterwards, each counted once, may be as many as nodes read before.
Check check_parameters(const Graph& before, const Graph& after);
Check compare_held_numbers(int64_t read_before, const Graph& after);

}  // namespace tenon
