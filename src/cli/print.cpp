// print.cpp — tenon print: a model in Tenon's text form, or as another tool would show it.
#include "ir/print.h"

#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "cli/saved_model.h"
#include "cli/show_model.h"
#include "frontends/builtin/builtin.h"
#include "views/views.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  ShowOptions show;
  std::string file;
};

void check(const Options& options) {
  check_options(options.show);
  if (!options.file.empty()) {
    check_writable(options.file);
    refuse_overwriting(options.model, options.file);
  }
}

// Text that cannot be read back should not be kept for that.
void note_hashes(const Graph& graph) {
  if (const size_t count = large_literals(graph).size(); count > 0)
    write_note(
        fmt::format("note: {} constant{} shown by a hash alone; -o FILE.tenon writes text that reads back\n",
                    count, count == 1 ? " is" : "s are"));
}

// What a saved program has: the model as it was read, and the program.
void print_saved(const Options& options) {
  if (options.show.stage != "imported" && options.show.stage != "program")
    throw user_error("{} is a saved program, of which there are the stages imported and program",
                     options.model.model);
  const auto file = runtime::ProgramFile::open(options.model.model);
  const std::string text = options.show.stage == "program"
                               ? show_program(open_saved_program(options.model.model).executor->program())
                           : options.show.is_graph() ? compiler::model_text(*file)
                                                     : show(*load_model(options.model), options.show);
  options.file.empty() ? write_output(text) : write_file(options.file, text);
}

void print_model(const Options& options) {
  check(options);
  if (is_saved_program(options.model.model))
    return print_saved(options);
  const std::unique_ptr<Graph> graph = graph_at_stage(load_model(options.model), options.show);
  if (!options.file.empty() && options.show.is_graph())
    return save(*graph, options.file);
  const std::string text = show(*graph, options.show);
  options.file.empty() ? write_output(text) : write_file(options.file, text);
  if (options.file.empty() && options.show.is_graph())
    note_hashes(*graph);
}

}  // namespace

void add_print(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("print", "shows a model");
  options->model.takes_programs = true;
  options->model.add_to(*command);
  std::vector<std::string> names;
  std::string list = "FORM is one of\n";
  for (const View& view : all_views()) {
    names.emplace_back(view.name);
    list += fmt::format("  {:<12} {}\n", view.name, view.doc);
  }
  add_choice(*command, "--as", options->show.as, "the form to show it in", names)->option_text("FORM");
  add_choice(
      *command, "--stage", options->show.stage,
      "the model as read, with its gradients, optimised, rewritten for this machine, or compiled for it",
      kStages);
  add_device(*command, options->show.device);
  options->show.passes.add_to(*command, pass_names_of_compiling());
  command
      ->add_option("--why", options->show.why,
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
                "tenon print builtin:unoptimized --stage optimised --disable merge-equal",
                "tenon print builtin:matmul_bias_relu --why linear",
                "tenon print builtin:mlp_softmax --device sm_90 --stage cuda",
                "tenon print builtin:attention_any_length --dim length=128 --stage program"}));
  command->callback([command, options] {
    refuse_decided(*command, options->model.model,
                   {"--dim", "--device", "--why", "--numerics", "--passes", "--disable"});
    print_model(*options);
  });
}

}  // namespace tenon::cli
