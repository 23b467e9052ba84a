// saturate.h — equality saturation: rules applied to many graphs at once instead of one after the other,
// where the order in which the pipeline applies them leads nowhere.
#pragma once

#include "passes/pipeline.h"
#include "rewrite/saturate/explore.h"
#include "rewrite/saturate/extract.h"

namespace tenon {

struct SaturationOptions {
  double seconds = 60;      // that one run of the pass may take
  int64_t most_nodes = 64;  // of one region
  saturate::Limits limits = {};
  const Rules* rules = nullptr;  // all of ours where there are none
};

// Goes through regions of the graph and those nested in it: as many nodes as may be that follow each other,
// without control flow, random numbers and ops from outside. Each becomes an e-graph, to which all rules are
// applied; where something in it is better by the cost, its rewrites are made one by one, each an application
// of its own.
void saturate_graph(Graph& graph, Journal& journal, const SaturationOptions& options,
                    const saturate::CostModel& cost);

// As a pass, by what is written as ONNX. It runs in the first rounds of the pipeline only, so that it and
// other passes cannot undo each other for ever.
Pass saturation_pass(const SaturationOptions& options);
// The portable pipeline with it.
std::vector<Pass> saturating_pipeline(const SaturationOptions& options);

}  // namespace tenon
