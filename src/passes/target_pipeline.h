// target_pipeline.h — the second table of passes over graphs: rewrites for one machine, one numerics budget
// and one precision. What they leave is lowered; it is no longer written as ONNX.
#pragma once

#include "passes/pipeline.h"
#include "target/target.h"

namespace tenon {

// The type in which products of f32 are multiplied.
enum class MatmulPrecision : uint8_t { F32, BF16 };

struct TargetContext {
  const Target& target;
  NumericsBudget numerics = NumericsBudget::Default;
  MatmulPrecision precision = MatmulPrecision::F32;
};

// A row of the table. A pass may have several rows, where what it looks for arises more than once.
struct TargetPass {
  std::string_view name;
  std::string_view doc;
  std::string_view condition;  // of the context, for people; empty where the pass always runs
  bool (*applies)(const TargetContext&);
  std::function<void(Graph&, Journal&, const TargetContext&)> run;
  std::string_view why_here;
};
const std::vector<TargetPass>& target_passes();

// Those that apply, as a pipeline for run_pipeline; the context must live as long.
std::vector<Pass> target_pipeline(const TargetContext& context);

}  // namespace tenon
