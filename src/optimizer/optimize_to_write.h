// optimize_to_write.h — a model optimised for an ONNX file that has no more nodes than the one it was read
// from, nor noticeably more bytes; one that was no ONNX file, than it would have unoptimised. Rewrites that
// only pay together with another that never applied are reverted.
#pragma once

#include "frontends/onnx/write/write.h"
#include "optimizer/count_ops.h"
#include "optimizer/source.h"
#include "passes/pipeline.h"

namespace tenon::optimizer {

enum class Form { Onnx, Text };

// As the name ends in .onnx or .tenon; another is a user_error.
Form form_of(const std::filesystem::path& path);

struct OptimizeToWriteOptions {
  Form form = Form::Onnx;  // text may become larger, and has our ops alone
  PipelineOptions passes = {};
  NumericsBudget numerics = NumericsBudget::Default;
  std::optional<int64_t> opset = std::nullopt;  // to write; nothing: that of the source, or newer
};

struct OptimizedModel {
  Form form = Form::Onnx;
  std::unique_ptr<Graph> graph;
  Journal journal = Journal();
  std::vector<PassReport> reports = {};
  int64_t nodes_before = 0;
  Counts ops_after = {};
  std::set<Remark> reverted = {};                         // what was optimised, and did not pay
  onnx::WriteOptions write = {};                          // how it is to be written
  std::shared_ptr<const MappedFile> unchanged = nullptr;  // the source, where nothing better was found
  std::optional<int64_t> source_opset = std::nullopt;
};

// The graph is what was read from the source, whole. Nodes are counted as ONNX has them, so that a file can
// be compared with what becomes of it; a model that ONNX cannot express is counted as our graph has it. How
// large a model may become that passes added by users changed is for these to say. The result may have nodes
// of the file that only ONNX can express: it can be written, but not compiled.
OptimizedModel optimize_to_write(std::unique_ptr<Graph> graph, const std::optional<Source>& source,
                                 const OptimizeToWriteOptions& options);

struct WrittenModel {
  bool is_unchanged = false;  // the source, byte for byte
  onnx::Written onnx = {};    // of ONNX that is not
};
// In the form that it was optimised for.
WrittenModel write_optimized(const OptimizedModel& model, const std::filesystem::path& path);

}  // namespace tenon::optimizer
