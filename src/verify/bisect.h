// bisect.h — which of the many rewrites that optimise a model changes what it computes? Where none does, but
// its program, which kernel?
#pragma once

#include <filesystem>

#include "compiler/compile_context.h"
#include "verify/kernel_checks.h"
#include "verify/verify.h"

namespace tenon {

// The part of compiling that is to blame, where no rewrite is: a pass over the kernel graph; a kernel, by its
// schedule or its code; fusion, where the program is right without; else what runs its steps.
struct WrongProgram {
  std::string part;                  // kernel-graph pass …, schedule, code generation, fusion or runtime
  std::optional<size_t> kernel;      // of the program, where one is wrong
  std::vector<std::string> sources;  // the nodes of the user's model that it computes
};

struct Culprit {
  Level level = Level::Portable;
  Application application;       // the rewrite that broke it; none where the level is compiled
  Check numbers;                 // how far the outputs are off once it is made
  std::unique_ptr<Graph> model;  // a small one that the same pass breaks; null where none was found
  Data inputs;                   // that show it in the small model
  std::optional<WrongProgram> program = std::nullopt;  // where the level is compiled
};

struct BisectOptions {
  VerifyOptions verify = {};
  // Inputs and what the model should give for them; drawn and computed where there are none.
  std::optional<Data> inputs = std::nullopt, expected = std::nullopt;
  // Where there is one, the target pipeline's rewrites follow the portable ones, and then the program.
  std::optional<compiler::CompileContext> context = std::nullopt;
};

// The first rewrite after which the model no longer agrees with what it computed, or with what it should
// give; rewrites are numbered through, those of the target pipeline last. Where it always does, the first
// rewrite that changes what it stands for by more than its class allows; and where none does, what is wrong
// with the program, if that does not agree. Nothing when all is right.
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
