// bisect.h — which of the many rewrites that optimise a model changes what it computes?
#pragma once

#include "verify/verify.h"

namespace tenon {

struct Culprit {
  Application application;       // the rewrite that broke it
  Check numbers;                 // how far the outputs are off once it is made
  std::unique_ptr<Graph> model;  // a small one that the same pass breaks; null where none was found
};

struct BisectOptions {
  VerifyOptions verify = {};
  // Inputs and what the model should give for them; drawn and computed where there are none.
  std::optional<Data> inputs = std::nullopt, expected = std::nullopt;
};

// The first rewrite after which the model no longer agrees with what it computed; nothing when there is none.
std::optional<Culprit> bisect(const Graph& model, const BisectOptions& options = {});

}  // namespace tenon
