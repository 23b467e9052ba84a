#include "cli/compile_model.h"

#include "cli/options.h"

namespace tenon::cli {
void show_progress(CompileOptions& options, std::optional<Progress>& progress) {
  options.before_kernel = [&progress, first = true](int64_t kernels) mutable {
    if (first)
      progress.emplace("compiling kernel", kernels);
    first = false;
    progress->step("");
  };
}

std::vector<PassReport> optimize_model(Graph& graph, Journal& journal, OptimizeOptions options) {
  Progress progress("optimising", 0);
  options.before_pass = [&](const Pass& pass, int64_t round) {
    progress.step(fmt::format("round {}, {}", round, pass.name));
  };
  return optimize(graph, journal, options);
}

void optimize_model(Graph& graph, NumericsBudget numerics, const std::set<std::string>& disabled) {
  Journal journal(numerics);
  optimize_model(graph, journal, {.disabled = disabled});
}

void add_precision(CLI::App& command, std::string& precision) {
  add_choice(command, "--precision", precision,
             "how products of f32 with weights round their factors; faster in bf16 where the processor has "
             "instructions for it",
             {"f32", "bf16"});
}

Precision parse_precision(const std::string& precision) {
  return precision == "bf16" ? Precision::BF16 : Precision::F32;
}

std::unique_ptr<Program> compile_model(const Graph& graph, CompileOptions options) {
  std::optional<Progress> progress;
  show_progress(options, progress);
  return compile(graph, options);
}

ExplainedProgram compile_model_explained(const Graph& graph, CompileOptions options) {
  std::optional<Progress> progress;
  show_progress(options, progress);
  return compile_explained(graph, options);
}

}  // namespace tenon::cli
