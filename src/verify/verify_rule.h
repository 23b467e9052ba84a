// verify_rule.h — does a rule that is written as two functions keep what its pattern computes? It is applied
// to the pattern itself, traced with drawn dtypes, ranks and sizes, and held to its class of numerics.
#pragma once

#include "rewrite/replace_pattern.h"
#include "verify/verify.h"

namespace tenon {

struct RuleOptions {
  double tolerance = 1e-4;  // as for a rewrite in a model
  uint64_t seed = 0;
};

// The smallest graph that was tried in which what the rule makes is something else.
struct RuleCounterexample {
  std::unique_ptr<Graph> before, after;  // no `after` where the replacement does not fit
  Data inputs, expected, actual;         // `actual` is empty where `after` does not run
  std::string problem;
};

struct RuleVerification {
  std::string rule = "";  // its name, and both functions as formulas
  Verdict verdict = Verdict::Unknown;
  std::string detail = "";  // why it is not known
  Numerics numerics = Numerics::Reassociates;
  int64_t graphs = 0, samples = 0;  // that agree
  std::vector<DType> dtypes = {};
  std::optional<RuleCounterexample> counterexample = std::nullopt;
  std::optional<Numerics> holds_as = std::nullopt;  // a looser class to which a rule that failed can be held
};

// Inputs of the rewrite that are f32 of unknown rank stand for tensors of any dtype and shape, and other
// floats for floats of any width; symbols are drawn. What a function throws that is no UserError leaves, but
// where the pattern has no meaning for what was drawn.
RuleVerification verify_rule(const PatternRewrite& rewrite, const RuleOptions& options = {});

// For people: the rule, the verdict, and the counterexample with its numbers.
std::string describe(const RuleVerification& verification);

}  // namespace tenon
