#include "tune/entrant.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"

namespace tenon {

using compiler::CompileContext;
using compiler::ExplainedProgram;
using compiler::FusedKernel;
using lowering::ContractionKey;
using runtime::KernelStep;
using runtime::Step;

namespace {

constexpr size_t kLeastRuns = 5, kMostRuns = 1000;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void note(Entrant& entrant, const FusedKernel& kernel) {
  if (!kernel.contraction)
    return;
  const ContractionKey key = kernel.contraction->contraction->key;
  entrant.keys.back() = key;
  if (!kernel.contraction->definition.reduces())
    return;
  TimedContraction& contraction =
      entrant.contractions.try_emplace(key, TimedContraction{*kernel.contraction, {}}).first->second;
  for (const std::string& source : kernel.sources)
    if (std::ranges::find(contraction.sources, source) == contraction.sources.end())
      contraction.sources.push_back(source);
}

void time_run(Entrant& entrant, const Data& inputs, int threads) {
  Clock::time_point before;
  const std::function<void()> before_steps = [&] { before = Clock::now(); };
  const std::function<void(size_t)> after_step = [&](size_t step) {
    const Clock::time_point now = Clock::now();
    entrant.steps[step].push_back(std::chrono::duration<double>(now - before).count());
    before = now;
  };
  entrant.executor->run(inputs,
                        {.threads = threads, .before_steps = &before_steps, .after_step = &after_step});
}

}  // namespace

Timing Entrant::timing() const {
  std::vector<const Times*> all;
  for (const Times& step : steps)
    all.push_back(&step);
  return tenon::timing_of(all);
}

Timing Entrant::timing_of(ContractionKey key) const {
  std::vector<const Times*> own;
  for (size_t i = 0; i < steps.size(); ++i)
    if (keys[i] == key)
      own.push_back(&steps[i]);
  return tenon::timing_of(own);
}

Entrant compile_entrant(const Graph& graph, const CompileContext& options) {
  ExplainedProgram compiled = compile_explained(graph, options);
  Entrant entrant{.executor = std::move(compiled.executor), .contractions = {}, .keys = {}};
  size_t kernels = 0;
  for (const Step& step : entrant.executor->program().steps) {
    entrant.keys.emplace_back();
    if (std::holds_alternative<KernelStep>(step))
      note(entrant, compiled.fusion.after.at(kernels++));
  }
  return entrant;
}

void measure_in_turn(const std::vector<Entrant*>& entrants, const Data& inputs, int threads, double seconds,
                     const std::function<void()>& before_turn) {
  for (Entrant* entrant : entrants) {
    entrant->steps.assign(entrant->keys.size(), {});
    entrant->executor->run(inputs, {.threads = threads});  // warms up
  }
  const Clock::time_point start = Clock::now();
  for (size_t iterations = 0;
       iterations < kLeastRuns || (iterations < kMostRuns && seconds_since(start) < seconds); ++iterations) {
    before_turn();
    for (Entrant* entrant : entrants)
      time_run(*entrant, inputs, threads);
  }
}

}  // namespace tenon
