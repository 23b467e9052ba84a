// print.cpp — tenon print: a model in Tenon's text form, or as another tool would show it.
#include "ir/print.h"

#include "autodiff/gradient.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/load_model.h"
#include "cli/output.h"
#include "frontends/builtin/builtin.h"
#include "passes/pipeline.h"
#include "views/views.h"

namespace tenon::cli {

void add_print(CLI::App& program) {
  struct Options {
    ModelArguments model;
    std::string as = "tenon", stage = "imported", file;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("print", "shows a model");
  options->model.add_to(*command);
  std::vector<std::string> names;
  std::string list = "FORM is one of\n";
  for (const View& view : all_views()) {
    names.emplace_back(view.name);
    list += fmt::format("  {:<12} {}\n", view.name, view.doc);
  }
  command->add_option("--as", options->as, "the form to show it in")
      ->check(CLI::IsMember(names).description(""))
      ->option_text("FORM [tenon]");
  command
      ->add_option("--stage", options->stage,
                   "the model as read, optimised, or with its gradients: imported, optimised, gradient")
      ->check(CLI::IsMember({"imported", "optimised", "gradient"}).description(""))
      ->option_text("STAGE [imported]");
  command
      ->add_option("-o", options->file, "writes it to this file; of the form tenon, it reads back anywhere")
      ->option_text("FILE");
  list += "NAME of a built-in model is one of\n";
  for (const builtin::Model& model : builtin::all_models())
    list += fmt::format("  {:<18} {}\n", model.name, model.doc);
  command->footer(list + "Example: tenon print builtin:tiny --as fx");
  command->callback([options] {
    if (!options->file.empty()) {
      check_writable(options->file);
      refuse_overwriting(options->model, options->file);
    }
    std::unique_ptr<Graph> graph = load_model(options->model);
    if (options->stage == "gradient")
      graph = differentiate(*graph);
    if (options->stage == "optimised") {
      Journal journal;
      optimize(*graph, journal);
    }
    if (!options->file.empty() && options->as == "tenon")
      return save(*graph, options->file);
    for (const View& view : all_views())
      if (view.name == options->as) {
        const std::string text = view.render(*graph);
        options->file.empty() ? write_output(text) : write_file(options->file, text);
      }
  });
}

}  // namespace tenon::cli
