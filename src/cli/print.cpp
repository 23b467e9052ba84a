// print.cpp — tenon print: a model in Tenon's text form, or as another tool would show it.
#include "ir/print.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "codegen/cuda/emit.h"
#include "compiler/explain_contraction.h"
#include "compiler/print_kernel_graph.h"
#include "compiler/print_program.h"
#include "compiler/target_graph.h"
#include "frontends/builtin/builtin.h"
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

namespace {

struct Options {
  ModelArguments model;
  std::string as = "tenon", stage = "imported", file;
  std::string why;  // a node; empty where nothing is asked
  std::string device = api::default_device();

  bool is_compiled() const {
    return kernel_graph_stage() || stage == "fused" || stage == "scheduled" || stage == "cuda" ||
           stage == "program";
  }

  std::optional<KernelGraphStage> kernel_graph_stage() const {
    constexpr std::string_view kStages[] = {"lowered", "select", "grouped"};
    const auto* found = std::ranges::find(kStages, stage);
    return found == std::end(kStages) ? std::nullopt
                                      : std::optional(static_cast<KernelGraphStage>(found - kStages));
  }
  // In the text form, which reads back.
  bool is_graph() const { return as == "tenon" && !is_compiled() && why.empty(); }
};

void check_options(const Options& options) {
  if (!options.why.empty() && options.as != "tenon")
    throw user_error("--as {} is for graphs: --why is answered in one form", options.as);
  if (options.is_compiled() && options.as != "tenon")
    throw user_error("--as {} is for graphs: the stage {} is shown in one form", options.as, options.stage);
  if (!options.file.empty()) {
    check_writable(options.file);
    refuse_overwriting(options.model, options.file);
  }
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

std::string show_compiled(const Graph& graph, const Options& options, const CompileContext& context) {
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
    return print_program(*program, sizes_of(program->inputs));
  } catch (const UserError& error) {
    throw user_error("{}\n  hint: sizes that are not given are 1; give them with {}", error.what(),
                     dims_to_bind(graph));
  }
}

std::string show(const Graph& graph, const Options& options) {
  const bool is_compiled = !options.why.empty() || options.is_compiled();
  if (!is_compiled) {
    const std::vector<View>& views = all_views();
    return std::ranges::find(views, options.as, &View::name)->render(graph);
  }
  const CompileContext context = api::default_context({.device = options.device});
  if (!options.why.empty())
    return explain_contraction(fusion_of(graph, context), options.why);
  if (const std::optional<KernelGraphStage> stage = options.kernel_graph_stage())
    return print_kernel_graph(graph, context, *stage);
  return show_compiled(graph, options, context);
}

// Text that cannot be read back should not be kept for that.
void note_hashes(const Graph& graph) {
  if (const size_t count = large_literals(graph).size(); count > 0)
    write_note(
        fmt::format("note: {} constant{} shown by a hash alone; -o FILE.tenon writes text that reads back\n",
                    count, count == 1 ? " is" : "s are"));
}

void print_model(const Options& options) {
  check_options(options);
  std::unique_ptr<Graph> graph = load_model(options.model);
  if (options.stage == "gradient")
    graph = differentiate(*graph);
  else if (options.stage != "imported" || !options.why.empty())
    optimize_model(*graph);
  if (options.stage == "target" && options.why.empty()) {
    Journal journal;
    graph = compiler::make_target_graph(*graph, api::default_context({.device = options.device}), journal);
  }
  if (!options.file.empty() && options.is_graph())
    return save(*graph, options.file);
  const std::string text = show(*graph, options);
  options.file.empty() ? write_output(text) : write_file(options.file, text);
  if (options.file.empty() && options.is_graph())
    note_hashes(*graph);
}

}  // namespace

void add_print(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("print", "shows a model");
  options->model.add_to(*command);
  std::vector<std::string> names;
  std::string list = "FORM is one of\n";
  for (const View& view : all_views()) {
    names.emplace_back(view.name);
    list += fmt::format("  {:<12} {}\n", view.name, view.doc);
  }
  add_choice(*command, "--as", options->as, "the form to show it in", names)->option_text("FORM");
  add_choice(
      *command, "--stage", options->stage,
      "the model as read, with its gradients, optimised, rewritten for this machine, or compiled for it",
      {"imported", "gradient", "optimised", "target", "lowered", "select", "grouped", "fused", "scheduled",
       "cuda", "program"});
  add_device(*command, options->device);
  command
      ->add_option("--why", options->why,
                   "why the contraction that this node became is computed as it is: what was weighed, with "
                   "estimates, and what decided")
      ->option_text("NODE");
  offer_files(command
                  ->add_option("-o,--output", options->file,
                               "writes it to this file; of the form tenon, it reads back")
                  ->option_text("FILE"));
  list += "NAME of a built-in model is one of\n";
  for (const builtin::Model& model : builtin::all_models())
    list += fmt::format("  {:<18} {}\n", model.name, model.doc);
  command->footer(
      list +
      examples({"tenon print builtin:tiny --as fx", "tenon print builtin:residual_linear --stage fused",
                "tenon print builtin:matmul_bias_relu --why linear",
                "tenon print builtin:mlp_softmax --device sm_90 --stage cuda",
                "tenon print builtin:attention_any_length --dim length=128 --stage program"}));
  command->callback([options] { print_model(*options); });
}

}  // namespace tenon::cli
