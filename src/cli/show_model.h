// show_model.h — a graph as text, at a stage of its way down.
#pragma once

#include "api/default_context.h"
#include "cli/pass_choice.h"
#include "ir/graph.h"
#include "passes/pipeline.h"

namespace tenon::cli {

extern const std::vector<std::string> kStages;  // from imported to program

struct ShowOptions {
  std::string as = "tenon";  // the name of a view
  std::string stage = "imported";
  std::string why = "";  // a node whose contraction is to be explained instead; empty where nothing is asked
  std::string device = api::default_device();
  PassChoice passes = {};  // from the stage optimised on
  std::vector<Pass> pipeline = portable_pipeline();

  bool is_compiled() const;  // the stage has no graph any more
  // Some passes have run.
  bool is_optimised() const { return !why.empty() || (stage != "imported" && stage != "gradient"); }
  compiler::CompileContext context() const;
  // In the text form, which reads back.
  bool is_graph() const { return as == "tenon" && !is_compiled() && why.empty(); }
};

// What does not go with the stage is a user_error.
void check_options(const ShowOptions& options);

// The graph as it is at the stage, or where it is last a graph.
std::unique_ptr<Graph> graph_at_stage(std::unique_ptr<Graph> graph, const ShowOptions& options);
// Sizes of inputs that are open count as 1.
std::string show_program(const runtime::Program& program);
// Of what graph_at_stage gives.
std::string show(const Graph& graph, const ShowOptions& options);

}  // namespace tenon::cli
