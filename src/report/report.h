// report.h — everything there is to see of a model on its way down, as one JSON object: docs/report.md says
// what is in it.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "passes/pipeline.h"
#include "report/measure.h"

namespace tenon {

struct ReportOptions {
  std::string model;    // as the user named it
  std::string version;  // of this program
  compiler::CompileContext compile;
  MeasureOptions measure = {};
  std::vector<Pass> pipeline = portable_pipeline();
  std::string not_verified = "";    // why; empty: every pass is verified
  bool verifies_on_inputs = false;  // on those that it runs on; else on some that are drawn
  Listener listener = {};
};

// The graph as it was read is optimised, compiled, run on these inputs and measured.
nlohmann::ordered_json make_report(Graph& graph, const Data& inputs, const ReportOptions& options);

// The data as an HTML file of its own, which loads nothing from elsewhere.
std::string page_of(const nlohmann::ordered_json& data);

}  // namespace tenon
