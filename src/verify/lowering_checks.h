// lowering_checks.h — what a graph is lowered to, against the graph itself: the nodes of its kernel graph
// after each pass over it, and the kernels that they are scheduled to. Each is run by itself, on what flows
// there when the graph runs once, so that a model of any size can be checked.
#pragma once

#include "compiler/compile_context.h"
#include "verify/cut_out.h"
#include "verify/verify.h"

namespace tenon {

struct LoweringChecksOptions {
  double tolerance = 1e-4;
  uint64_t seed = 0;  // of the elements that are sampled
  Listener listener = {};
};

// A pass over the kernel graph, of which every node that it changed is computed on up to 256 elements; or, as
// "schedule", all kernels, of which those that are small enough are interpreted.
struct LoweringCheck {
  std::string pass;
  Level level = Level::Lowered;
  int64_t changes = 0;  // nodes that were changed, or kernels that were interpreted
  Check numbers, lint;
  std::vector<std::string> sources = {};  // nodes of the user's model that the first wrong one computes
  std::optional<size_t> kernel = {};      // the first wrong one, of a schedule

  bool failed() const { return numbers.verdict == Verdict::Failed || lint.verdict == Verdict::Failed; }
};

// Checks how a graph that has run the target pipeline is lowered: "lower" first, then the passes that changed
// what nodes define, or left the kernel graph malformed, and then the schedule. `recorded` is what flows
// through the graph. The passes that follow one that is wrong are not checked.
std::vector<LoweringCheck> check_lowering(const Graph& target_graph, const RecordedValues& recorded,
                                          const compiler::CompileContext& context,
                                          const LoweringChecksOptions& options = {});

// The nodes of a kernel graph that changed since the last look, on sampled elements.
class KernelGraphChecks {
 public:
  KernelGraphChecks(const RecordedValues& recorded, const LoweringChecksOptions& options)
      : recorded_(recorded), options_(options) {}

  LoweringCheck look(std::string_view pass, const lowering::KernelGraph& graph);

 private:
  const RecordedValues& recorded_;
  const LoweringChecksOptions& options_;
  std::map<std::string, std::string> seen_;  // what nodes compute, by the buffers that they write
};

}  // namespace tenon
