#include "cli/show_model.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "cli/compile_model.h"
#include "cli/pass_names.h"
#include "codegen/cuda/emit.h"
#include "compiler/explain_contraction.h"
#include "compiler/print_kernel_graph.h"
#include "compiler/print_program.h"
#include "compiler/target_graph.h"
#include "verify/sample_inputs.h"
#include "views/views.h"

namespace tenon::cli {

using compiler::CompileContext;
using compiler::explain_contraction;
using compiler::fusion_of;
using compiler::KernelGraphStage;
using compiler::print_fusion;
using compiler::print_kernels;
using compiler::print_program;
using compiler::program_of;

const std::vector<std::string> kStages = {"imported", "gradient", "optimised", "target", "lowered", "select",
                                          "grouped",  "fused",    "scheduled", "cuda",   "program"};

namespace {

std::optional<KernelGraphStage> kernel_graph_stage(const ShowOptions& options) {
  constexpr std::string_view kOfKernelGraphs[] = {"lowered", "select", "grouped"};
  const auto* found = std::ranges::find(kOfKernelGraphs, options.stage);
  return found == std::end(kOfKernelGraphs)
             ? std::nullopt
             : std::optional(static_cast<KernelGraphStage>(found - kOfKernelGraphs));
}

// Sizes that nothing binds are 1.
Bindings sizes_of(const std::vector<InputPort>& inputs) {
  Bindings sizes;
  for (const InputPort& input : inputs)
    for (const std::string& symbol : symbols_of(input.type))
      sizes.emplace(symbol, 1);
  return sizes;
}

std::string show_fusion(const Graph& graph, const CompileContext& context) {
  const std::string text =
      print_fusion(fusion_of(graph, context), context.target, sizes_of(inputs_of(graph)));
  const std::string dims = dims_to_bind(graph);
  return dims.empty() ? text
                      : fmt::format("sizes that are not given count as 1; give them with {}\n{}", dims, text);
}

// Each kernel once, with the nodes that it computes.
std::string show_cuda(const compiler::ScheduledGraph& scheduled, const CompileContext& context) {
  if (!context.target.gpu)
    throw user_error("the stage cuda is for GPUs: give one with --device cuda, or --device {}",
                     fmt::join(gpu_names(), ", "));
  std::string text;
  std::set<std::string> known;
  size_t next = 0;
  for (const runtime::Step& step : scheduled.program->steps)
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step)) {
      const std::string code = codegen::cuda::emit_cuda(scheduled.kernels[next++]).text;
      if (known.insert(code).second)
        text += fmt::format("{}// {}: {}\n{}", text.empty() ? "" : "\n", kernel->name(),
                            runtime::describe_sources(kernel->sources), code);
    }
  return text;
}

std::string show_compiled(const Graph& graph, const ShowOptions& options, const CompileContext& context) {
  if (options.stage == "fused")
    return show_fusion(graph, context);
  if (options.stage != "program") {
    const compiler::ScheduledGraph scheduled = schedule_graph(graph, context);
    return options.stage == "cuda" ? show_cuda(scheduled, context)
                                   : print_kernels(*scheduled.program, scheduled.kernels);
  }
  const std::shared_ptr<const runtime::Program> program = context.device == compiler::kNoDevice
                                                              ? schedule_graph(graph, context).program
                                                              : program_of(graph, context);
  try {
    return show_program(*program);
  } catch (const UserError& error) {
    throw user_error("{}\n  hint: sizes that are not given are 1; give them with {}", error.what(),
                     dims_to_bind(graph));
  }
}

}  // namespace

bool ShowOptions::is_compiled() const {
  return kernel_graph_stage(*this) || stage == "fused" || stage == "scheduled" || stage == "cuda" ||
         stage == "program";
}

CompileContext ShowOptions::context() const {
  CompileContext context =
      api::default_context({.numerics = parse_numerics_budget(passes.numerics), .device = device});
  context.disabled = passes.left_out(pass_names_of_compiling());
  return context;
}

void check_options(const ShowOptions& options) {
  const PassChoice& passes = options.passes;
  if (const bool chooses = !passes.only.empty() || !passes.disabled.empty() || passes.numerics != "default";
      chooses && !options.is_optimised())
    throw user_error("at the stage {} no passes have run that could be chosen\n  hint: --stage optimised",
                     options.stage);
  if (!options.why.empty() && options.as != "tenon")
    throw user_error("--as {} is for graphs: --why is answered in one form", options.as);
  if (options.is_compiled() && options.as != "tenon")
    throw user_error("--as {} is for graphs: the stage {} is shown in one form", options.as, options.stage);
}

std::unique_ptr<Graph> graph_at_stage(std::unique_ptr<Graph> graph, const ShowOptions& options) {
  if (options.stage == "gradient")
    return differentiate(*graph);
  if (!options.is_optimised())
    return graph;
  Journal journal(parse_numerics_budget(options.passes.numerics));
  PipelineOptions passes = options.passes.portable(pass_names_of_compiling());
  passes.pipeline = options.pipeline;
  optimize_model(*graph, journal, std::move(passes));
  if (options.stage == "target" && options.why.empty())
    return compiler::make_target_graph(*graph, options.context(), journal);
  return graph;
}

std::string show_program(const runtime::Program& program) {
  return print_program(program, sizes_of(program.inputs));
}

std::string show(const Graph& graph, const ShowOptions& options) {
  const bool is_compiled = !options.why.empty() || options.is_compiled();
  if (!is_compiled) {
    const std::vector<View>& views = all_views();
    const auto view = std::ranges::find(views, options.as, &View::name);
    if (view == views.end())
      throw user_error("there is no form {}", options.as);
    return view->render(graph);
  }
  const CompileContext context = options.context();
  if (!options.why.empty())
    return explain_contraction(fusion_of(graph, context), options.why);
  if (const std::optional<KernelGraphStage> stage = kernel_graph_stage(options))
    return print_kernel_graph(graph, context, *stage);
  return show_compiled(graph, options, context);
}

}  // namespace tenon::cli
