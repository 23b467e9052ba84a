// optimized_model.h — a model optimised to be written. What comes out has no more nodes than the ONNX file
// that was read, nor noticeably more bytes: where a rewrite only pays with another that did not come, it is
// taken back.
#pragma once

#include "cli/count_ops.h"
#include "cli/load_model.h"
#include "frontends/onnx/write/write.h"
#include "passes/pipeline.h"

namespace tenon::cli {

struct HowToOptimize {
  ModelArguments model;
  OptimizeOptions passes = {};
  NumericsBudget numerics = NumericsBudget::Default;
  std::optional<int64_t> opset = std::nullopt;  // that it is written in
  bool is_held_to_source = true;                // else it may become larger, and is made of our ops alone
};

struct OptimizedModel {
  std::unique_ptr<Graph> graph;
  Journal journal;
  std::vector<PassReport> reports;
  int64_t nodes_before = 0;
  Counts ops_after = {};
  std::set<Remark> taken_back = {};  // what was optimised, and did not pay
  onnx::WriteOptions write = {};     // how it is to be written as ONNX
  bool is_as_it_came = false;        // the file that was read is better than what became of it
};

// Nodes are counted as ONNX has them, so that a file and what becomes of it are compared; what ONNX cannot
// say is counted as our graphs have it.
OptimizedModel optimize_to_write(const HowToOptimize& how);

// That an ONNX file has; nothing for other models.
std::optional<int64_t> opset_of(const std::string& model);

}  // namespace tenon::cli
