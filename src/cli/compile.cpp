// compile.cpp — tenon compile: a model as a program that runs without a code generator.
#include "base/units.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/saved_model.h"
#include "cli/version.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  std::string output, numerics = "default", precision = "f32";
  int threads = 1;
};

void check_output(const Options& options) {
  if (!is_saved_program(options.output))
    throw user_error("cannot write {}: its name must end in {}", options.output, runtime::kProgramExtension);
  check_writable(options.output);
  refuse_overwriting(options.model, options.output);
}

// As it compiles for this machine.
constexpr const char* kNative = "native";

void compile_and_save(const Options& options) {
  check_output(options);
  const std::unique_ptr<Graph> model = load_model(options.model);
  const std::unique_ptr<Graph> graph = model->clone();
  const NumericsBudget numerics = parse_numerics_budget(options.numerics);
  optimize_model(*graph, numerics);
  std::optional<Progress> progress;
  compiler::TargetToSave target{
      .name = kNative,
      .context = api::default_context({.numerics = numerics,
                                       .precision = parse_precision(options.precision),
                                       .threads = options.threads,
                                       .device = "cpu"})};
  show_progress(target.context, progress);
  const compiler::SavedSizes sizes = compiler::save_program(
      {.model = *model,
       .optimised = *graph,
       .made_with = fmt::format("{}\nnumerics: {}, precision: {}, threads: {}\n", describe_build(),
                                options.numerics, options.precision, options.threads)},
      {target}, options.output);
  progress.reset();
  const auto bytes = [](uint64_t size) { return format_bytes(static_cast<double>(size)); };
  write_output(fmt::format("wrote {}: {}, of which {} are weights and {} code\n", options.output,
                           bytes(sizes.file), bytes(sizes.weights), bytes(sizes.code)));
}

}  // namespace

void add_compile(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("compile", "saves a model as a program that runs without a code generator");
  options->model.add_to(*command);
  offer_files(command->add_option("-o,--output", options->output, "the program that is written, .tnp")
                  ->option_text("FILE")
                  ->required(),
              {".tnp"});
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_threads(*command, options->threads);
  command->footer(examples({"tenon compile builtin:attention -o attention.tnp",
                            "tenon compile builtin:attention_any_length --dim length=128 -o attention.tnp"}));
  command->callback([options] { compile_and_save(*options); });
}

}  // namespace tenon::cli
