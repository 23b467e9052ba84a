// bisect.h — which of the many rewrites that optimise a model changes what it computes?
#pragma once

#include <filesystem>

#include "verify/verify.h"

namespace tenon {

struct Culprit {
  Application application;       // the rewrite that broke it
  Check numbers;                 // how far the outputs are off once it is made
  std::unique_ptr<Graph> model;  // a small one that the same pass breaks; null where none was found
  Data inputs;                   // that show it in the small model
};

struct BisectOptions {
  VerifyOptions verify = {};
  // Inputs and what the model should give for them; drawn and computed where there are none.
  std::optional<Data> inputs = std::nullopt, expected = std::nullopt;
};

// The first rewrite after which the model no longer agrees with what it computed, or with what it should
// give. Where it always does, the first rewrite that changes what it stands for by more than its class
// allows. Nothing when there is none.
std::optional<Culprit> bisect(const Graph& model, const BisectOptions& options = {});

struct WrittenCulprit {
  std::filesystem::path model;
  std::filesystem::path inputs;  // an .npz beside it; empty where they are no tensors
  std::string why_not_onnx;      // if the model was to be an .onnx, but is a .tenon
};

// Writes the small model, as the ending of the path says, and its inputs. Where ONNX cannot say it, or says
// it in other words, in which the rewrite finds nothing to do, it is a .tenon file instead.
WrittenCulprit write_culprit(const Culprit& culprit, const std::filesystem::path& path,
                             const BisectOptions& options = {});

}  // namespace tenon
