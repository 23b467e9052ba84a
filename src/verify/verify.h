// verify.h — is a graph still the same after a pass? Four checks: its numbers, its gradients, its form, and
// its parameters.
#pragma once

#include "passes/pipeline.h"

namespace tenon {

enum class Verdict : uint8_t {
  Passed,
  Failed,
  Unknown,  // it could not be checked, or checking proves nothing; `detail` says why
};

struct Check {
  Verdict verdict = Verdict::Unknown;
  double error = 0;    // max |difference| over max |expected|, for numbers and gradients
  std::string detail;  // what is wrong, or why it is not known
};

struct PassVerification {
  std::string pass;
  int64_t changes = 0;  // rewrites the pass made
  Check numbers;        // the outputs agree on random inputs
  Check gradients;      // so do the gradients for the inputs, and for the parameters that both graphs have
  Check lint;           // the graph is well formed
  Check parameters;     // there are no more numbers in parameters and constants than there were

  bool failed() const;
};

struct VerifyOptions {
  int64_t samples = 3;      // random inputs
  double tolerance = 1e-4;  // for numbers and gradients; 0 under strict numerics
  uint64_t seed = 0;
  NumericsBudget numerics = NumericsBudget::Default;
  std::vector<Pass> pipeline = portable_pipeline();
  // Told of each pass before it is checked.
  std::function<void(std::string_view pass)> before_pass = nullptr;
};

// Whether outputs of those names are what was expected, within the tolerance of the options.
Check compare_all(const Data& actual, const Data& expected, const std::vector<std::string>& names,
                  const VerifyOptions& options);

// Is `after` the same as `before`, which a pass made it from?
PassVerification verify_graphs(const Graph& before, const Graph& after, const VerifyOptions& options = {});

// Runs one pass on a copy of the model, and checks what it made of it. For a pass or rules of your own.
PassVerification verify_pass(const Graph& model, const Pass& pass, const VerifyOptions& options = {});

// Runs the pipeline until it changes nothing, and checks every pass that changed something; then, as
// "everything", the last graph against the first.
std::vector<PassVerification> verify_pipeline(const Graph& model, const VerifyOptions& options = {});

}  // namespace tenon
