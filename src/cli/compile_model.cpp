#include "cli/compile_model.h"

#include "base/progress.h"
#include "passes/pipeline.h"

namespace tenon::cli {

void optimize_model(Graph& graph, NumericsBudget numerics) {
  Journal journal(numerics);
  optimize(graph, journal);
}

std::unique_ptr<Program> compile_model(const Graph& graph, CompileOptions options) {
  std::optional<Progress> progress;
  options.before_kernel = [&](int64_t kernels) {
    if (!progress)
      progress.emplace("compiling kernel", kernels);
    progress->step("");
  };
  return compile(graph, options);
}

}  // namespace tenon::cli
