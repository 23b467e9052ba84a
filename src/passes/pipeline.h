// pipeline.h — the passes in order, each with the reason for its place, and what runs them.
#pragma once

#include <functional>

#include "passes/passes.h"
#include "passes/running_nodes.h"
#include "rewrite/replace_pattern.h"

namespace tenon {

struct Pass {
  std::string_view name;
  std::string_view doc;  // what it does, one line
  std::function<void(Graph&, Journal&)> run;
  std::string_view why_here;
  bool is_added = false;  // by a program that uses Tenon: what it does wrong is not our fault
  std::shared_ptr<const PatternRewrite> rewrite = nullptr;  // that it makes, where it was added as one
};

// What `tenon optimize` does: the result is good for every machine, and can be written as ONNX. Throws what
// is wrong with what was added to it.
const std::vector<Pass>& portable_pipeline();

// Adds a pass to that pipeline, for all that this process optimises from then on. To be called before
// anything else runs, and with texts that live as long as it does. The pass comes before the one of this
// name, which must be there; it has a name of its own that is not taken. As it is called where nobody catches
// errors, the first mistake is kept until the pipeline is asked for, as command_line does, which tells of it.
void add_pass(Pass pass, std::string_view before = "freeze-parameters");
// The same for a rewrite that is written as two functions: it becomes a pass of its name, which no rule of
// ours has either.
void add_rewrite(PatternRewrite rewrite, std::string_view before = "freeze-parameters");

// The same for any pipeline, but mistakes are thrown at once.
void insert_pass(std::vector<Pass>& pipeline, Pass pass, std::string_view before);

struct PassReport {
  std::string pass;
  double milliseconds;
  int64_t changes;    // rewrites it made
  int64_t nodes;      // that run, after it
  int64_t round = 1;  // through the pipeline
};

struct PipelineOptions {
  std::vector<Pass> pipeline = portable_pipeline();
  std::set<std::string> only = {};  // if any, no other passes run
  std::set<std::string> disabled = {};
  bool lint_everything = false;  // after every pass; else only the nodes it made
  std::function<void(const Pass&, int64_t round)> before_pass = nullptr;
  // Called after every pass that changed something.
  std::function<void(const Pass&, const Graph&)> after_pass = nullptr;
};

// Runs the pipeline again and again until it changes nothing. A pass that leaves a graph that is not well
// formed is our bug, and so are passes that undo each other, unless one was added. Unknown names of passes
// are the user's fault.
std::vector<PassReport> optimize(Graph& graph, Journal& journal, const PipelineOptions& options = {});

// Runs the pipeline once, from the first pass to the last. Names that are not in it select nothing: they may
// be those of another pipeline.
std::vector<PassReport> run_pipeline(Graph& graph, Journal& journal, const PipelineOptions& options);

}  // namespace tenon
