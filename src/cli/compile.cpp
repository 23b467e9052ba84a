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
#include "target/compile_targets.h"
#include "target/words.h"

namespace tenon::cli {
namespace {

// As it compiles for this machine.
constexpr const char* kNative = "native";

struct Options {
  ModelArguments model;
  std::string output, numerics = "default", precision = "f32", targets = kNative;
  int threads = 1;
};

void check_output(const Options& options) {
  if (!is_saved_program(options.output))
    throw user_error("cannot write {}: its name must end in {}", options.output, runtime::kProgramExtension);
  check_writable(options.output);
  refuse_overwriting(options.model, options.output);
}

compiler::TargetToSave target_to_save(const Options& options, NumericsBudget numerics,
                                      std::string_view name) {
  compiler::TargetToSave made{
      .name = std::string(name),
      .context = api::default_context({.numerics = numerics,
                                       .precision = parse_precision(options.precision),
                                       .threads = options.threads,
                                       .device = "cpu"})};
  if (name == kNative)
    return made;
  made.context.target = compile_target(name);
  made.context.target.cores = this_machine().cores;  // which generate the code
  made.context.tuning = {};                          // was measured here
  return made;
}

std::vector<compiler::TargetToSave> targets_to_save(const Options& options, NumericsBudget numerics) {
  constexpr size_t kLongestName = 30;  // that fits into the names of sections
  std::vector<compiler::TargetToSave> targets;
  for (std::string_view rest = options.targets; !rest.empty();) {
    const std::string_view name = cut(rest, ',');
    if (std::ranges::find(targets, name, &compiler::TargetToSave::name) != targets.end())
      throw user_error("--target names {} twice", name);
    if (name.size() > kLongestName)
      throw user_error("--target {}: a target has a name of at most {} letters", name, kLongestName);
    targets.push_back(target_to_save(options, numerics, name));
  }
  if (targets.empty())
    throw user_error("--target names none");
  return targets;
}

void compile_and_save(const Options& options) {
  check_output(options);
  const std::unique_ptr<Graph> model = load_model(options.model);
  const std::unique_ptr<Graph> graph = model->clone();
  const NumericsBudget numerics = parse_numerics_budget(options.numerics);
  optimize_model(*graph, numerics);
  std::vector<compiler::TargetToSave> targets = targets_to_save(options, numerics);
  std::optional<Progress> progress;
  for (compiler::TargetToSave& target : targets)
    show_progress(target.context, progress);
  const compiler::SavedSizes sizes = compiler::save_program(
      {.model = *model,
       .optimised = *graph,
       .made_with = fmt::format("{}\nnumerics: {}, precision: {}, threads: {}\n", describe_build(),
                                options.numerics, options.precision, options.threads)},
      targets, options.output);
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
  command
      ->add_option("--target", options->targets,
                   "the processors that it has code for, such as x86-64-v3,x86-64-v4,armv8.2+dotprod")
      ->option_text("NAME,…")
      ->capture_default_str();
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_threads(*command, options->threads);
  command->footer(examples({"tenon compile builtin:attention -o attention.tnp",
                            "tenon compile builtin:attention -o attention.tnp --target x86-64-v3,x86-64-v4",
                            "tenon compile builtin:attention_any_length --dim length=128 -o attention.tnp"}));
  command->callback([options] { compile_and_save(*options); });
}

}  // namespace tenon::cli
