// verify.h — is a graph still the same after a pass? Four checks: its numbers, its gradients, its form, and
// its parameters.
#pragma once

#include "passes/pipeline.h"
#include "verify/listener.h"

namespace tenon {

enum class Verdict : uint8_t {
  Passed,
  Failed,
  Unknown,     // it could not be checked, or checking proves nothing
  NoGradient,  // there is none to compare
  DoesNotApply,
};

std::string_view name(Verdict verdict);  // ok, FAILED, unknown, no gradient, -

// How far down: passes for every machine, those of the target pipeline, lowering and the passes over the
// kernel graph, the kernels it is scheduled to, and the program that they end in.
enum class Level : uint8_t { Portable, Target, Lowered, Scheduled, Compiled };
std::string_view name(Level level);

struct Check {
  Verdict verdict = Verdict::Unknown;
  double error = 0;         // max |difference| over max |expected|, for numbers and gradients
  std::string detail = "";  // what is wrong, or why it is not known; empty where it passed
  std::vector<std::string> nearly_zero = {};  // what was compared without proving anything, being nearly 0
  std::vector<std::string> unchecked = {};    // what could not be compared, and why
  std::vector<std::string> missing = {};      // gradients there were before and are no more
  // What is off by as much as the model itself is once the floats on the way move by a rounding step; what
  // that moves altogether, so that comparing proves nothing; and what was NaN in places and is no more.
  std::vector<std::string> rounding = {}, unsteady = {}, was_nan = {};
};

struct PassVerification {
  std::string pass;
  int64_t changes = 0;  // rewrites the pass made
  Check numbers;        // the outputs agree on random inputs
  Check gradients;      // so do the gradients for the inputs, and for the parameters that both graphs have
  Check lint;           // the graph is well formed
  Check parameters;     // the model holds no more numbers than its nodes read

  Level level = Level::Portable;

  bool failed() const;
};

enum class GradientChecks : uint8_t {
  Auto,    // unless the model is large
  Always,  // of a large model, those of the whole
  Never,
};

struct VerifyOptions {
  int64_t samples = 3;                        // random inputs
  std::optional<Data> inputs = std::nullopt;  // instead of random ones
  // For numbers and gradients, unless the model rounds to narrow floats (tolerances.h); outputs must have the
  // same bits under strict numerics.
  double tolerance = 1e-4;
  uint64_t seed = 0;
  NumericsBudget numerics = NumericsBudget::Default;
  GradientChecks gradients = GradientChecks::Auto;
  std::vector<Pass> pipeline = portable_pipeline();
  Listener listener = {};
};

// Whether outputs of the model, computed otherwise, are what was expected, within the tolerance of the
// options or what rounding explains (tolerances.h).
Check compare_all(const Graph& model, const Data& actual, const Data& expected, const VerifyOptions& options);

// How many floats a model holds once all that is fixed in it is computed: weights, and tables made of
// constants and sizes, as far as outputs depend on them. What is computed twice counts once, and one number
// throughout counts nothing. Loops of few iterations count as if they were unrolled. What several nodes read
// counts once, or for each.
enum class SharedNumbers : uint8_t { CountOnce, CountForEachReader };
int64_t count_held_numbers(const Graph& graph, SharedNumbers shared = SharedNumbers::CountOnce);

// Is `after` the same as `before`, which a pass made it from?
PassVerification verify_graphs(const Graph& before, const Graph& after, const VerifyOptions& options = {});

// Runs one pass on a copy of the model, and checks what it made of it. For a pass or rules of your own.
PassVerification verify_pass(const Graph& model, const Pass& pass, const VerifyOptions& options = {});

// A model that holds and computes more numbers than this in one run is large.
constexpr int64_t kLargeModel = 5'000'000;
bool is_large(const Graph& model);

// Runs the pipeline until it changes nothing, and checks every pass that changed something; then, as
// "everything", the last graph against the first. A large model is run on one sample, before and after; the
// numbers of a pass are then those of its rewrites, each checked on what flows there, and gradients are not
// compared, unless always.
std::vector<PassVerification> verify_pipeline(const Graph& model, const VerifyOptions& options = {});

}  // namespace tenon
