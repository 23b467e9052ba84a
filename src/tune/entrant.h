// entrant.h — a program that was compiled with some choices for its contractions, and how long these take.
#pragma once

#include "compiler/compile.h"
#include "tune/adopt.h"

namespace tenon {

// One contraction of a program: all steps that compute it, wherever they are in the model, or move elements
// for it.
struct TimedContraction {
  lowering::Stage stage;             // of the first step that computes it
  std::vector<std::string> sources;  // nodes of the user's model
};

struct Entrant {
  std::unique_ptr<runtime::Executor> executor;
  std::map<lowering::ContractionKey, TimedContraction> contractions;
  std::vector<std::optional<lowering::ContractionKey>> keys;  // of the steps
  std::vector<Times> steps = {};                              // of each

  Timing timing() const;
  Timing timing_of(lowering::ContractionKey key) const;
  size_t runs() const { return steps.empty() ? 0 : steps.front().size(); }
};

Entrant compile_entrant(const Graph& graph, const compiler::CompileContext& options);

// Runs all once after another, so that what slows the machine down for a while slows all of them; for that
// many seconds, and a few times at least. Tells before each iteration.
void measure_in_turn(const std::vector<Entrant*>& entrants, const Data& inputs, int threads, double seconds,
                     const std::function<void()>& before_turn);

}  // namespace tenon
