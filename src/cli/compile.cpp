// compile.cpp — tenon compile: a model as a program that runs without a code generator.
#include "api/targets_to_save.h"
#include "base/scratch_folder.h"
#include "base/units.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/load_model.h"
#include "cli/machine_file.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/saved_model.h"
#include "cli/version.h"
#include "codegen/data_object.h"

namespace tenon::cli {
namespace {

// What is written.
constexpr const char *kProgram = "program", *kObject = "object";
constexpr std::string_view kObjectExtension = ".o";

struct Options {
  ModelArguments model;
  std::string output, as = kProgram, numerics = "default", precision = "f32";
  std::optional<std::string> targets;
  std::vector<std::string> machines;  // that the program is for, as files
  int threads = 1;
};

bool is_object(const Options& options) { return options.as == kObject; }

std::string header_path(const Options& options) {
  return std::filesystem::path(options.output).replace_extension(".h").string();
}

void check_output(const Options& options) {
  const std::string_view extension = is_object(options) ? kObjectExtension : runtime::kProgramExtension;
  if (!options.output.ends_with(extension))
    throw user_error("cannot write {}: its name must end in {}", options.output, extension);
  std::vector<std::string> outputs = {options.output};
  if (is_object(options))
    outputs.push_back(header_path(options));
  for (const std::string& output : outputs) {
    check_writable(output);
    refuse_overwriting(options.model, output);
  }
}

std::vector<compiler::TargetToSave> targets_to_save(const Options& options, NumericsBudget numerics) {
  const api::ContextOptions context{.numerics = numerics,
                                    .precision = parse_precision(options.precision),
                                    .threads = options.threads,
                                    .device = "cpu"};
  std::vector<compiler::TargetToSave> targets;
  if (options.targets || options.machines.empty())
    with_context(
        [] { return "--target"; },
        [&] { targets = api::targets_to_save(options.targets.value_or(api::kNativeTarget), context); });
  for (const std::string& file : options.machines) {
    const Target machine = read_machine(file);
    with_context(
        [] { return "--like"; },
        [&] { api::add_target(targets, std::filesystem::path(file).stem().string(), machine, context); });
  }
  return targets;
}

// The one that all targets have, for an object is of one.
Architecture architecture_of(const std::vector<compiler::TargetToSave>& targets) {
  const Architecture architecture = targets.front().context.target.architecture;
  for (const compiler::TargetToSave& target : targets)
    if (target.context.target.architecture != architecture)
      throw user_error("--as object: {} and {} are not of one architecture, as what is linked must be",
                       targets.front().name, target.name);
  return architecture;
}

// What C calls the program: the name of the file, with _ for what C does not allow.
std::string symbol_of(const Options& options) {
  std::string name = std::filesystem::path(options.output).stem().string();
  const auto is_allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::ranges::replace_if(
      name, [&](char c) { return !is_allowed(c); }, '_');
  return name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0 ? "_" + name : name;
}

constexpr std::string_view kHeader =
    R"(/* {0}.h — the program in {0}.o, which tenon compile has made. Link it with -ltenonrt. */
#ifndef TENON_PROGRAM_{1}
#define TENON_PROGRAM_{1}

#include <tenon/tenon.h>

#ifdef __cplusplus
extern "C" {{
#endif

extern const unsigned char {1}_program[{2}];

/* `options` may be NULL. */
static inline tenon_status {1}_open(const tenon_open_options* options, tenon_program** program) {{
  return tenon_open_memory({1}_program, sizeof {1}_program, options, program);
}}

#ifdef __cplusplus
}}
#endif

#endif
)";

// A program that is saved to be linked.
class Object {
 public:
  Object(const Options& options, const std::vector<compiler::TargetToSave>& targets)
      : options_(options), architecture_(architecture_of(targets)) {}

  // Where it is saved first.
  std::filesystem::path program() const { return folder_.path() / "program.tnp"; }

  void write() const {
    const auto file = MappedFile::open(program());
    const std::string symbol = symbol_of(options_);
    const std::string header = fmt::format(kHeader, std::filesystem::path(options_.output).stem().string(),
                                           symbol, file->bytes().size());
    write_files({{options_.output,
                  [&](const std::filesystem::path& temporary) {
                    codegen::write_data_object(temporary, architecture_, symbol + "_program", file->bytes());
                  }},
                 {header_path(options_),
                  [&](const std::filesystem::path& temporary) { write_content(temporary, header); }}});
  }

 private:
  const Options& options_;
  Architecture architecture_;
  ScratchFolder folder_;
};

void compile_and_save(const Options& options) {
  check_output(options);
  const std::unique_ptr<Graph> model = load_model(options.model);
  const std::unique_ptr<Graph> graph = model->clone();
  const NumericsBudget numerics = parse_numerics_budget(options.numerics);
  optimize_model(*graph, numerics);
  std::vector<compiler::TargetToSave> targets = targets_to_save(options, numerics);
  std::optional<Object> object;
  if (is_object(options))
    object.emplace(options, targets);
  std::optional<Progress> progress;
  for (compiler::TargetToSave& target : targets)
    show_progress(target.context, progress);
  const compiler::SavedSizes sizes = compiler::save_program(
      {.model = *model,
       .optimised = *graph,
       .made_with = fmt::format("{}\nnumerics: {}, precision: {}, threads: {}\n", describe_build(),
                                options.numerics, options.precision, options.threads)},
      targets, object ? object->program() : std::filesystem::path(options.output));
  progress.reset();
  if (object)
    object->write();
  const auto bytes = [](uint64_t size) { return format_bytes(static_cast<double>(size)); };
  write_output(fmt::format("wrote {}{}: {}, of which {} are weights and {} code\n", options.output,
                           object ? " and " + header_path(options) : "", bytes(sizes.file),
                           bytes(sizes.weights), bytes(sizes.code)));
}

}  // namespace

void add_compile(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("compile", "saves a model as a program that runs without a code generator");
  options->model.add_to(*command);
  offer_files(command
                  ->add_option("-o,--output", options->output,
                               "the program that is written, .tnp, or .o of an object")
                  ->option_text("FILE")
                  ->required(),
              {".tnp", ".o"});
  command
      ->add_option("--target", options->targets,
                   "the processors that it has code for, such as x86-64-v3,x86-64-v4,armv8.2+dotprod")
      ->option_text("NAME,…")
      ->default_str(api::kNativeTarget);
  offer_files(command->add_option("--like", options->machines,
                                  "a machine that it has code for, as tenon devices --json writes it there"),
              {".json"})
      ->option_text("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_choice(*command, "--as", options->as,
             "an object is linked into a program, and comes with a header for C", {kProgram, kObject});
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_threads(*command, options->threads);
  command->footer(examples({"tenon compile builtin:attention -o attention.tnp",
                            "tenon compile builtin:attention -o attention.tnp --target x86-64-v3,x86-64-v4",
                            "tenon compile builtin:attention --as object -o attention.o",
                            "tenon compile builtin:attention_any_length --dim length=128 -o attention.tnp"}));
  command->callback([options] { compile_and_save(*options); });
}

}  // namespace tenon::cli
