// lowering_checks.h — what a graph is lowered to, against the graph itself: the nodes of its kernel graph
// after each pass over it, and the kernels that they are scheduled to. Each is run by itself, on values
// recorded in one run of the graph, so that large models can be checked.
#pragma once

#include <random>

#include "compiler/compile_context.h"
#include "verify/recorded_buffers.h"
#include "verify/verify.h"

namespace tenon {

struct LoweringChecksOptions {
  double tolerance = 1e-4;
  uint64_t seed = 0;  // of the elements that are sampled
  Listener listener = {};
};

// A pass over the kernel graph, of which every node that it changed is computed on up to 256 elements; or, as
// "schedule", all kernels (schedule_checks.h).
struct LoweringCheck {
  std::string pass;
  Level level = Level::Lowered;
  int64_t changes = 0;  // nodes that were changed, or kernels that were interpreted
  Check numbers = {}, lint = {};
  std::vector<std::string> sources = {};  // nodes of the user's model that the first wrong one computes
  std::optional<size_t> kernel = {};      // the first wrong one, of a schedule

  bool failed() const { return numbers.verdict == Verdict::Failed || lint.verdict == Verdict::Failed; }
};

// Checks how a graph that has run the target pipeline is lowered: "lower" first, then the passes that changed
// what nodes define, or left the kernel graph malformed, and then the schedule. `recorded` is what the values
// of the graph are in one run. What follows a pass that is wrong is not checked.
std::vector<LoweringCheck> check_lowering(const Graph& target_graph, const RecordedValues& recorded,
                                          const compiler::CompileContext& context,
                                          const LoweringChecksOptions& options = {});

// Checks kernel graphs of one graph, pass after pass: the nodes that changed since, on sampled elements.
class KernelGraphChecks {
 public:
  KernelGraphChecks(const RecordedValues& recorded, LoweringChecksOptions options)
      : recorded_(recorded), options_(std::move(options)), random_(options_.seed) {}

  LoweringCheck check_pass(std::string_view pass, const lowering::KernelGraph& graph);

  const RecordedBuffers& recorded() const { return recorded_; }

 private:
  RecordedBuffers recorded_;
  const LoweringChecksOptions options_;
  std::mt19937_64 random_;
  std::map<std::string, std::string> seen_;  // what nodes compute, by the buffers that they write
};

}  // namespace tenon
