#include "cli/compile_model.h"

#include "cli/options.h"

namespace tenon::cli {

using compiler::CompileContext;
using compiler::ExplainedProgram;
using runtime::Executor;

void show_progress(CompileContext& context, std::optional<Progress>& progress) {
  context.before_kernel = [&progress, first = true](int64_t kernels) mutable {
    if (first)
      progress.emplace("compiling kernel", kernels);
    first = false;
    progress->step("");
  };
}

void show_progress(PipelineOptions& options, Progress& progress) {
  options.before_pass = [&](const Pass& pass, int64_t round) {
    progress.step(fmt::format("round {}, {}", round, pass.name));
  };
}

std::vector<PassReport> optimize_model(Graph& graph, Journal& journal, PipelineOptions options) {
  Progress progress("optimising", 0);
  show_progress(options, progress);
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

void add_device(CLI::App& command, std::string& device) {
  command
      .add_option("--device", device,
                  "where the model runs: cpu, cuda or cuda:N, as tenon devices lists them")
      ->option_text("DEVICE")
      ->default_str("TENON_DEVICE, else cpu");
}

MatmulPrecision parse_precision(const std::string& precision) {
  return precision == "bf16" ? MatmulPrecision::BF16 : MatmulPrecision::F32;
}

std::unique_ptr<Executor> compile_model(const Graph& graph, CompileContext context) {
  std::optional<Progress> progress;
  show_progress(context, progress);
  return compile(graph, context);
}

ExplainedProgram compile_model_explained(const Graph& graph, CompileContext context) {
  std::optional<Progress> progress;
  show_progress(context, progress);
  return compile_explained(graph, context);
}

}  // namespace tenon::cli
